-- Rows of a few bytes stand in one tree instead of two; requests are found by their ids in one index instead of two.
CREATE TABLE `__new_memory_versions` (
	`scope_id` integer NOT NULL,
	`memory_id` text NOT NULL,
	`label` integer NOT NULL,
	`current` integer NOT NULL,
	PRIMARY KEY(`scope_id`, `label`, `memory_id`),
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `__new_memory_versions` (`scope_id`, `memory_id`, `label`, `current`) SELECT `scope_id`, `memory_id`, `label`, `current` FROM `memory_versions` ORDER BY `scope_id`, `label`, `memory_id`;
--> statement-breakpoint
DROP TABLE `memory_versions`;
--> statement-breakpoint
ALTER TABLE `__new_memory_versions` RENAME TO `memory_versions`;
--> statement-breakpoint
CREATE TABLE `__new_sections` (
	`scope_id` integer NOT NULL,
	`digest` text NOT NULL,
	PRIMARY KEY(`scope_id`, `digest`),
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `__new_sections` (`scope_id`, `digest`) SELECT `scope_id`, `digest` FROM `sections` ORDER BY `scope_id`, `digest`;
--> statement-breakpoint
DROP TABLE `sections`;
--> statement-breakpoint
ALTER TABLE `__new_sections` RENAME TO `sections`;
--> statement-breakpoint
CREATE TABLE `__new_requests` (
	`scope_id` integer NOT NULL,
	`request_id` text NOT NULL,
	`turn` integer NOT NULL,
	`leaf` integer NOT NULL,
	`body` text NOT NULL,
	`answer` text NOT NULL,
	`evicted` integer NOT NULL,
	`observed` text,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`request_id`, `scope_id`),
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
INSERT INTO `__new_requests` (`scope_id`, `request_id`, `turn`, `leaf`, `body`, `answer`, `evicted`, `observed`, `created_at`) SELECT `scope_id`, `request_id`, `turn`, `leaf`, `body`, `answer`, `evicted`, `observed`, `created_at` FROM `requests`;
--> statement-breakpoint
DROP TABLE `requests`;
--> statement-breakpoint
ALTER TABLE `__new_requests` RENAME TO `requests`;
--> statement-breakpoint
CREATE INDEX `requests_by_turn` ON `requests` (`scope_id`,`turn`);
--> statement-breakpoint
DROP INDEX `turns_conversation`;
--> statement-breakpoint
CREATE INDEX `turns_conversation` ON `turns` (`scope_id`,`conversation_id`) WHERE "turns"."conversation_id" is not null;
