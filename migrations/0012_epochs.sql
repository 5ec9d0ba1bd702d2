DROP INDEX `turns_conversation`;--> statement-breakpoint
ALTER TABLE `turns` ADD `computed_tokens` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `turns` ADD `epoch` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `turns` ADD `behind` text;--> statement-breakpoint
CREATE INDEX `turns_conversation` ON `turns` (`scope_id`,`conversation_id`,`id`) WHERE "turns"."conversation_id" is not null;--> statement-breakpoint
CREATE INDEX `turns_by_parent` ON `turns` (`scope_id`,`parent`);--> statement-breakpoint
WITH RECURSIVE `path` (`scope_id`, `id`, `epoch`) AS (
	SELECT `scope_id`, `id`, `id` FROM `turns` WHERE `parent` IS NULL
	UNION ALL
	SELECT t.`scope_id`, t.`id`, p.`epoch` FROM `path` p JOIN `turns` t ON t.`scope_id` = p.`scope_id` AND t.`parent` = p.`id`
)
UPDATE `turns` SET `epoch` = `path`.`epoch` FROM `path`
WHERE `path`.`scope_id` = `turns`.`scope_id` AND `path`.`id` = `turns`.`id`;
--> statement-breakpoint
UPDATE `turns` SET `epoch` = `id` WHERE `epoch` = 0;
--> statement-breakpoint
DROP INDEX `turns_by_parent`;
