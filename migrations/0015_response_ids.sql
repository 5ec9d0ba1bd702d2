CREATE TABLE `responses` (
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
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`request_id`,`scope_id`) REFERENCES `requests`(`request_id`,`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `responses_by_request` ON `responses` (`request_id`,`scope_id`);--> statement-breakpoint
CREATE INDEX `responses_by_use` ON `responses` (`tenant`,`used`);