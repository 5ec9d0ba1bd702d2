CREATE TABLE `first_token_times` (
	`engine` text NOT NULL,
	`number` integer NOT NULL,
	`uncached_tokens` integer NOT NULL,
	`cached_tokens` integer NOT NULL,
	`ms` real NOT NULL,
	PRIMARY KEY(`engine`, `number`)
);
