ALTER TABLE `index_nodes` ADD `bracketed` integer DEFAULT 1 NOT NULL;--> statement-breakpoint
-- Counts of lines: a label has lost its brackets, a token each.
UPDATE `blocks` SET `tokens` = max(0, `tokens` - 2);
