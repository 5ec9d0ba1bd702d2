CREATE TABLE `instructions` (
	`scope_id` integer NOT NULL,
	`digest` text NOT NULL,
	`messages` text NOT NULL,
	PRIMARY KEY(`scope_id`, `digest`),
	FOREIGN KEY (`scope_id`) REFERENCES `scopes`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `journal` (
	`seq` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`scope_id` integer NOT NULL,
	`n` integer NOT NULL,
	`kind` integer NOT NULL,
	`at` integer NOT NULL,
	`turn` integer NOT NULL,
	`turns` integer NOT NULL,
	`conversation` integer,
	`request_id` text,
	`leaf` integer,
	`sum` integer NOT NULL,
	`changes` text,
	`said` text,
	FOREIGN KEY (`scope_id`) REFERENCES `scopes`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `journal_by_scope` ON `journal` (`scope_id`,`n`,`turn`,`turns`,`conversation`,`kind`);--> statement-breakpoint
CREATE INDEX `journal_by_request` ON `journal` (`request_id`,`scope_id`) WHERE request_id is not null;--> statement-breakpoint
CREATE TABLE `known_memories` (
	`seq` integer PRIMARY KEY NOT NULL,
	`scope_id` integer NOT NULL,
	`hashes` blob NOT NULL,
	FOREIGN KEY (`seq`) REFERENCES `journal`(`seq`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `snapshots` (
	`scope_id` integer PRIMARY KEY NOT NULL,
	`n` integer NOT NULL,
	`sum` integer NOT NULL,
	`data` text NOT NULL,
	FOREIGN KEY (`scope_id`) REFERENCES `scopes`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`tenant` text NOT NULL,
	`secret_digest` text NOT NULL,
	`label` text,
	`created_at` integer NOT NULL,
	`revoked_at` integer,
	FOREIGN KEY (`tenant`) REFERENCES `tenants`(`tenant`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `deletions` (
	`bucket` integer PRIMARY KEY NOT NULL,
	`users` integer NOT NULL,
	`memories` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `digest_keys` (
	`id` integer PRIMARY KEY NOT NULL,
	`key` blob NOT NULL
);
--> statement-breakpoint
CREATE TABLE `first_token_times` (
	`engine` text NOT NULL,
	`number` integer NOT NULL,
	`uncached_tokens` integer NOT NULL,
	`cached_tokens` integer NOT NULL,
	`ms` real NOT NULL,
	PRIMARY KEY(`engine`, `number`)
);
--> statement-breakpoint
CREATE TABLE `forgotten_memories` (
	`tenant` text NOT NULL,
	`user_id` text NOT NULL,
	`memory_id` text NOT NULL,
	PRIMARY KEY(`tenant`, `user_id`, `memory_id`)
);
--> statement-breakpoint
CREATE TABLE `responses` (
	`scope_id` integer NOT NULL,
	`id` text NOT NULL,
	`tenant` text NOT NULL,
	`used` integer NOT NULL,
	`request_id` text NOT NULL,
	PRIMARY KEY(`scope_id`, `id`),
	FOREIGN KEY (`scope_id`) REFERENCES `scopes`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `responses_by_request` ON `responses` (`request_id`,`scope_id`);--> statement-breakpoint
CREATE INDEX `responses_by_use` ON `responses` (`tenant`,`used`);--> statement-breakpoint
CREATE TABLE `scopes` (
	`scope_id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`tenant` text NOT NULL,
	`user_id` text NOT NULL,
	`agent_id` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `scopes_by_name` ON `scopes` (`tenant`,`user_id`,`agent_id`);--> statement-breakpoint
CREATE TABLE `source_deletions` (
	`tenant` text NOT NULL,
	`user_id` text NOT NULL,
	`memory_id` text NOT NULL,
	PRIMARY KEY(`tenant`, `user_id`, `memory_id`)
);
--> statement-breakpoint
CREATE TABLE `tenants` (
	`tenant` text PRIMARY KEY NOT NULL,
	`cache_secret` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
INSERT INTO `digest_keys` (`id`, `key`) VALUES (1, randomblob(32));
