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
CREATE TABLE `tenants` (
	`tenant` text PRIMARY KEY NOT NULL,
	`cache_secret` text NOT NULL,
	`created_at` integer NOT NULL
);
