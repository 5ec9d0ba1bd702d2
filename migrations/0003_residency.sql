ALTER TABLE `index_nodes` ADD `used_at` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `index_nodes` ADD `tokens` integer DEFAULT 0 NOT NULL;