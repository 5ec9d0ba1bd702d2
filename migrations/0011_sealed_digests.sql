-- Digests are sealed with a key of the database, and what the application said is kept once. `sealed`, `message_digest` and
-- `message_meaning` are functions of the connection that migrates: see src/store/migration-functions.ts.
CREATE TABLE `digest_keys` (
	`id` integer PRIMARY KEY NOT NULL,
	`key` blob NOT NULL
);
--> statement-breakpoint
INSERT INTO `digest_keys` (`id`, `key`) VALUES (1, randomblob(32));
--> statement-breakpoint
CREATE TABLE `messages` (
	`id` integer PRIMARY KEY NOT NULL,
	`scope_id` integer NOT NULL,
	`digest` text NOT NULL,
	`meant` text,
	`body` text,
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `messages_by_digest` ON `messages` (`scope_id`,`digest`);
--> statement-breakpoint
INSERT INTO `messages` (`scope_id`, `digest`, `body`)
SELECT `said`.`scope_id`, `said`.`digest`, `said`.`body` FROM (
	SELECT t.`scope_id` AS `scope_id`, t.`id` AS `turn`, d.`value` AS `digest`, g.`value` AS `body`
	FROM `turns` t, json_each(t.`given_digests`) d LEFT JOIN json_each(t.`given`) g ON g.`key` = d.`key`
	UNION ALL
	SELECT h.`scope_id`, 0, message_digest(m.`value`), m.`value` FROM `heads` h, json_each(h.`messages`) m
) `said`
GROUP BY `said`.`scope_id`, `said`.`digest`, `said`.`body` ORDER BY min(`said`.`turn`), `said`.`scope_id`;
--> statement-breakpoint
CREATE TABLE `__new_turns` (
	`scope_id` integer NOT NULL,
	`id` integer NOT NULL,
	`conversation_id` text,
	`parent` integer,
	`given` text NOT NULL,
	`placement` text NOT NULL,
	`injection` text NOT NULL,
	`retention` text DEFAULT 'keep' NOT NULL,
	`fresh_start` integer DEFAULT false NOT NULL,
	`requested` text DEFAULT '[]' NOT NULL,
	`head` text NOT NULL,
	`prompt` text NOT NULL,
	`anchor` text NOT NULL,
	`prompt_tokens` integer NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`scope_id`, `id`),
	FOREIGN KEY (`scope_id`) REFERENCES `users`(`scope_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
INSERT INTO `__new_turns`("scope_id", "id", "conversation_id", "parent", "given", "placement", "injection", "retention", "fresh_start", "requested", "head", "prompt", "anchor", "prompt_tokens", "created_at")
SELECT t."scope_id", t."id", t."conversation_id", t."parent",
	(SELECT json_group_array(s.`id`) FROM (
		SELECT m.`id` FROM json_each(t.`given_digests`) d LEFT JOIN json_each(t.`given`) g ON g.`key` = d.`key`
		JOIN `messages` m ON m.`scope_id` = t.`scope_id` AND m.`digest` = d.`value` AND m.`body` IS g.`value`
		ORDER BY d.`key`
	) s),
	t."placement", t."injection", t."retention", t."fresh_start", t."requested",
	sealed(t."head", (SELECT `key` FROM `digest_keys`)), sealed(t."prompt", (SELECT `key` FROM `digest_keys`)), sealed(t."anchor", (SELECT `key` FROM `digest_keys`)),
	t."prompt_tokens", t."created_at"
FROM `turns` t ORDER BY t.rowid;
--> statement-breakpoint
DROP TABLE `turns`;
--> statement-breakpoint
ALTER TABLE `__new_turns` RENAME TO `turns`;
--> statement-breakpoint
CREATE INDEX `turns_conversation` ON `turns` (`scope_id`,`conversation_id`) WHERE "turns"."conversation_id" is not null;
--> statement-breakpoint
UPDATE `heads` SET `messages` = (SELECT json_group_array(s.`id`) FROM (
	SELECT m.`id` FROM json_each(`heads`.`messages`) h
	JOIN `messages` m ON m.`scope_id` = `heads`.`scope_id` AND m.`digest` = message_digest(h.`value`) AND m.`body` = h.`value`
	ORDER BY h.`key`
) s) WHERE `messages` IS NOT NULL;
--> statement-breakpoint
UPDATE `heads` SET `digest` = sealed(`digest`, (SELECT `key` FROM `digest_keys`));
--> statement-breakpoint
UPDATE `messages` SET `digest` = sealed(`digest`, (SELECT `key` FROM `digest_keys`)),
	`meant` = sealed(CASE WHEN `body` IS NULL THEN NULL ELSE message_meaning(`body`) END, (SELECT `key` FROM `digest_keys`));
--> statement-breakpoint
UPDATE `sections` SET `digest` = sealed(`digest`, (SELECT `key` FROM `digest_keys`));
--> statement-breakpoint
UPDATE `requests` SET `body` = sealed(`body`, (SELECT `key` FROM `digest_keys`));
--> statement-breakpoint
UPDATE `index_nodes` SET `anchor` = sealed(`anchor`, (SELECT `key` FROM `digest_keys`)) WHERE `anchor` IS NOT NULL;
--> statement-breakpoint
ALTER TABLE `blocks` DROP COLUMN `text_digest`;
