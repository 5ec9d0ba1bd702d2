ALTER TABLE `turns` ADD `retention` text DEFAULT 'keep' NOT NULL;--> statement-breakpoint
ALTER TABLE `turns` ADD `fresh_start` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `turns` ADD `requested` text DEFAULT '[]' NOT NULL;