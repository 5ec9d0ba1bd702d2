CREATE TABLE `changes` (
	`scope_id` integer NOT NULL,
	`version` integer NOT NULL,
	`changes` text NOT NULL,
	PRIMARY KEY(`scope_id`, `version`)
);
--> statement-breakpoint
CREATE TABLE `conversations` (
	`scope_id` integer NOT NULL,
	`id` text NOT NULL,
	`used_at` integer NOT NULL,
	`forgotten_at` integer,
	`sent_after` text,
	`opening` text,
	PRIMARY KEY(`scope_id`, `id`)
);
--> statement-breakpoint
CREATE INDEX `conversations_by_opening` ON `conversations` (`scope_id`,`opening`);--> statement-breakpoint
CREATE TABLE `keys` (
	`id` text PRIMARY KEY NOT NULL,
	`tenant` text NOT NULL,
	`secret_digest` text NOT NULL,
	`label` text,
	`created_at` integer NOT NULL,
	`revoked_at` integer,
	`cache_secret` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `messages` (
	`scope_id` integer NOT NULL,
	`conversation_id` text NOT NULL,
	`key` text NOT NULL,
	`turn_id` integer NOT NULL,
	`message` text NOT NULL,
	PRIMARY KEY(`scope_id`, `conversation_id`, `key`)
);
--> statement-breakpoint
CREATE TABLE `prompts` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`scope_id` integer NOT NULL,
	`turn_id` integer NOT NULL,
	`tenant` text NOT NULL,
	`user_id` text NOT NULL,
	`agent_id` text NOT NULL,
	`conversation_id` text,
	`request_id` text NOT NULL,
	`at` integer NOT NULL,
	`model` text NOT NULL,
	`engine` text NOT NULL,
	`layout` text NOT NULL,
	`policy` text NOT NULL,
	`retention` text NOT NULL,
	`epoch_began` text,
	`epoch_prompts` integer,
	`in_message_tokens` integer,
	`in_system_tokens` integer,
	`prompt_tokens` integer NOT NULL,
	`expected_tokens` integer NOT NULL,
	`uncached_tokens` integer NOT NULL,
	`carried_tokens` integer NOT NULL,
	`planned_cause` text,
	`planned_tokens` integer,
	`miss_cause` text,
	`miss_tokens` integer,
	`reported_prompt_tokens` integer,
	`reported_cached_tokens` integer,
	`first_token_ms` real,
	`first_token_bin` integer,
	`apart` text,
	`saved_money` real,
	`missed_money` real,
	`law` text,
	`sample` integer,
	`sample_uncached` integer,
	`sample_cached` integer,
	`sample_ms` real
);
--> statement-breakpoint
CREATE UNIQUE INDEX `prompts_by_turn` ON `prompts` (`scope_id`,`turn_id`);--> statement-breakpoint
CREATE INDEX `prompts_by_time` ON `prompts` (`tenant`,`at`);--> statement-breakpoint
CREATE INDEX `prompts_by_sample` ON `prompts` (`law`,`sample`) WHERE "prompts"."law" is not null;--> statement-breakpoint
CREATE TABLE `requests` (
	`scope_id` integer NOT NULL,
	`id` text NOT NULL,
	`turn_id` integer NOT NULL,
	`at` integer NOT NULL,
	`digest` text NOT NULL,
	`leaf` integer NOT NULL,
	`answer` text NOT NULL,
	`report` text,
	`evicted` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`scope_id`, `turn_id`)
);
--> statement-breakpoint
CREATE INDEX `requests_by_id` ON `requests` (`id`,`scope_id`);--> statement-breakpoint
CREATE TABLE `scopes` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`tenant` text NOT NULL,
	`user_id` text NOT NULL,
	`agent_id` text NOT NULL,
	`created_at` integer NOT NULL,
	`version` integer DEFAULT 0 NOT NULL,
	`snapshot_version` integer DEFAULT 0 NOT NULL,
	`snapshot` text,
	`forgotten` text,
	`pending` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `scopes_by_name` ON `scopes` (`tenant`,`user_id`,`agent_id`);--> statement-breakpoint
CREATE TABLE `turns` (
	`scope_id` integer NOT NULL,
	`id` integer NOT NULL,
	`conversation_id` text,
	`at` integer NOT NULL,
	`head` text NOT NULL,
	`section` text,
	`sections` text,
	`response_id` text,
	`engine_conversation` text,
	`turn` text NOT NULL,
	PRIMARY KEY(`scope_id`, `id`)
);
--> statement-breakpoint
CREATE INDEX `turns_by_conversation` ON `turns` (`scope_id`,`conversation_id`,`id`);--> statement-breakpoint
CREATE INDEX `turns_by_response` ON `turns` (`scope_id`,`response_id`) WHERE "turns"."response_id" is not null;--> statement-breakpoint
CREATE INDEX `turns_by_engine_conversation` ON `turns` (`scope_id`,`engine_conversation`) WHERE "turns"."engine_conversation" is not null;--> statement-breakpoint
CREATE INDEX `single_turns_by_time` ON `turns` (`at`) WHERE "turns"."conversation_id" is null;--> statement-breakpoint
CREATE TABLE `writes` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`scope_id` integer NOT NULL,
	`queue` text NOT NULL,
	`turn_id` integer,
	`at` integer NOT NULL,
	`exchanges` integer NOT NULL,
	`addition` text NOT NULL,
	`held_until` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `writes_by_queue` ON `writes` (`scope_id`,`queue`,`id`);