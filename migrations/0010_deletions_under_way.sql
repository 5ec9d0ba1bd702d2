CREATE TABLE `deletions` (
	`bucket` integer PRIMARY KEY NOT NULL,
	`users` integer NOT NULL,
	`memories` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `source_deletions` (
	`tenant` text NOT NULL,
	`user_id` text NOT NULL,
	`memory_id` text NOT NULL,
	PRIMARY KEY(`tenant`, `user_id`, `memory_id`)
);
