CREATE TABLE "memstem"."usage_alerts" (
	"rule" text PRIMARY KEY NOT NULL,
	"number" bigint NOT NULL,
	"is_firing" boolean NOT NULL,
	"changed_at" bigint NOT NULL,
	"claimed_until" bigint
);
--> statement-breakpoint
CREATE TABLE "memstem"."usage_changes" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "memstem"."usage_changes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"tenant" text NOT NULL,
	"at" bigint NOT NULL,
	"prompts" bigint[] NOT NULL
);
