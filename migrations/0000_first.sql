CREATE TABLE `blocks` (
	`scope_id` integer NOT NULL,
	`label` integer NOT NULL,
	`text` text NOT NULL,
	`text_digest` text NOT NULL,
	`tokens` integer NOT NULL,
	`superseded_by` integer,
	PRIMARY KEY(`scope_id`, `label`),
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `conversations` (
	`scope_id` integer NOT NULL,
	`id` text NOT NULL,
	`turns` integer NOT NULL,
	`created_at` integer NOT NULL,
	`last_turn_at` integer NOT NULL,
	PRIMARY KEY(`scope_id`, `id`),
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `forgotten_memories` (
	`tenant` text NOT NULL,
	`user_id` text NOT NULL,
	`memory_id` text NOT NULL,
	PRIMARY KEY(`tenant`, `user_id`, `memory_id`)
);
--> statement-breakpoint
CREATE TABLE `heads` (
	`scope_id` integer NOT NULL,
	`digest` text NOT NULL,
	`messages` text,
	PRIMARY KEY(`scope_id`, `digest`),
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `index_nodes` (
	`scope_id` integer NOT NULL,
	`id` integer NOT NULL,
	`parent` integer,
	`anchor` text,
	`run` text NOT NULL,
	`position` integer NOT NULL,
	`next_position` integer NOT NULL,
	`uses` integer NOT NULL,
	`live` integer NOT NULL,
	`last_used` integer NOT NULL,
	PRIMARY KEY(`scope_id`, `id`),
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `memory_versions` (
	`scope_id` integer NOT NULL,
	`memory_id` text NOT NULL,
	`label` integer NOT NULL,
	`current` integer NOT NULL,
	PRIMARY KEY(`scope_id`, `memory_id`, `label`),
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `requests` (
	`scope_id` integer NOT NULL,
	`request_id` text NOT NULL,
	`turn` integer NOT NULL,
	`leaf` integer NOT NULL,
	`body` text NOT NULL,
	`answer` text NOT NULL,
	`evicted` integer NOT NULL,
	`observed` text,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`scope_id`, `request_id`),
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `requests_by_id` ON `requests` (`request_id`);--> statement-breakpoint
CREATE TABLE `sections` (
	`scope_id` integer NOT NULL,
	`digest` text NOT NULL,
	PRIMARY KEY(`scope_id`, `digest`),
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `turns` (
	`scope_id` integer NOT NULL,
	`id` integer NOT NULL,
	`conversation_id` text,
	`parent` integer,
	`given_digests` text NOT NULL,
	`given` text,
	`placement` text NOT NULL,
	`injection` text NOT NULL,
	`head` text NOT NULL,
	`prompt` text NOT NULL,
	`anchor` text NOT NULL,
	`prompt_tokens` integer NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`scope_id`, `id`),
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `turns_conversation` ON `turns` (`scope_id`,`conversation_id`);--> statement-breakpoint
CREATE TABLE `users` (
	`scope_id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`tenant` text NOT NULL,
	`user_id` text NOT NULL,
	`agent_id` text NOT NULL,
	`version` integer NOT NULL,
	`next_label` integer NOT NULL,
	`next_node` integer NOT NULL,
	`next_turn` integer NOT NULL,
	`requests` integer NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `users_scope` ON `users` (`tenant`,`user_id`,`agent_id`);