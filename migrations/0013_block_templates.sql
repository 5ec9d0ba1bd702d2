ALTER TABLE `memory_versions` ADD `template` text;--> statement-breakpoint
ALTER TABLE `memory_versions` ADD `own_start` integer;--> statement-breakpoint
ALTER TABLE `memory_versions` ADD `own_length` integer;