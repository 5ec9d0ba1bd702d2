-- Every change of a scope is a row of `journal`. The tables from before it stay until their scopes were moved.
CREATE TABLE `instructions` (
	`scope_id` integer NOT NULL,
	`digest` text NOT NULL,
	`messages` text NOT NULL,
	PRIMARY KEY(`scope_id`, `digest`),
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
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
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
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
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `__new_responses` (
	`scope_id` integer NOT NULL,
	`id` text NOT NULL,
	`tenant` text NOT NULL,
	`used` integer NOT NULL,
	`request_id` text NOT NULL,
	`held` integer NOT NULL,
	`sent_messages` integer NOT NULL,
	`sent` text NOT NULL,
	`output` text NOT NULL,
	PRIMARY KEY(`scope_id`, `id`),
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
INSERT INTO `__new_responses`("scope_id", "id", "tenant", "used", "request_id", "held", "sent_messages", "sent", "output") SELECT "scope_id", "id", "tenant", "used", "request_id", "held", "sent_messages", "sent", "output" FROM `responses`;--> statement-breakpoint
DROP TABLE `responses`;--> statement-breakpoint
ALTER TABLE `__new_responses` RENAME TO `responses`;--> statement-breakpoint
CREATE INDEX `responses_by_request` ON `responses` (`request_id`,`scope_id`);--> statement-breakpoint
CREATE INDEX `responses_by_use` ON `responses` (`tenant`,`used`);--> statement-breakpoint
-- In place of the reference: it goes with the table.
CREATE TRIGGER `responses_of_request` AFTER DELETE ON `requests` BEGIN
	DELETE FROM `responses` WHERE `request_id` = OLD.`request_id` AND `scope_id` = OLD.`scope_id`;
END;
--> statement-breakpoint
-- A process of an earlier version that has the file open fails with every commit from here on, and has written nothing.
ALTER TABLE `users` RENAME COLUMN `version` TO `table_version`;
