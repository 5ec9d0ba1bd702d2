-- Until 0002 labels in a row stood apart by ", ". What was sent then is rendered so for good: byte for byte as it was sent.
UPDATE `turns` SET `injection` = json_set(`injection`, '$.s', ', ')
WHERE (`conversation_id` IS NOT NULL AND `requested` = '[]' AND json_array_length(`injection`, '$.b') + json_array_length(`injection`, '$.a') > 0)
	OR EXISTS (
		SELECT 1 FROM `requests`
		WHERE `requests`.`scope_id` = `turns`.`scope_id` AND `requests`.`turn` = `turns`.`id`
			AND json_extract(`requests`.`answer`, '$.plan.retention') IS NULL
	);
