CREATE TABLE `ordering_rows` (
	`scope_id` integer NOT NULL,
	`kind` text NOT NULL,
	`id` integer NOT NULL,
	`row` text NOT NULL,
	PRIMARY KEY(`scope_id`, `kind`, `id`),
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
