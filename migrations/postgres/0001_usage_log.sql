CREATE TABLE "memstem"."usage_batches" (
	"id" text PRIMARY KEY NOT NULL,
	"at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memstem"."usage_causes" (
	"tenant" text NOT NULL,
	"step" bigint NOT NULL,
	"start" bigint NOT NULL,
	"group_id" bigint NOT NULL,
	"cause" text NOT NULL,
	"prompts" bigint NOT NULL,
	"tokens" bigint NOT NULL,
	"money" double precision DEFAULT 0 NOT NULL,
	CONSTRAINT "usage_causes_tenant_step_start_group_id_cause_pk" PRIMARY KEY("tenant","step","start","group_id","cause")
);
--> statement-breakpoint
CREATE TABLE "memstem"."usage_conversations" (
	"id" bigint PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"user_id" bigint NOT NULL,
	"name" text NOT NULL,
	"prompts" bigint DEFAULT 0 NOT NULL,
	"prompt_tokens" bigint DEFAULT 0 NOT NULL,
	"uncached_tokens" bigint DEFAULT 0 NOT NULL,
	"missed_tokens" bigint DEFAULT 0 NOT NULL,
	"shared_prompt_tokens" bigint DEFAULT 0 NOT NULL,
	"shared_expected_tokens" bigint DEFAULT 0 NOT NULL,
	"shared_reported_prompt_tokens" bigint DEFAULT 0 NOT NULL,
	"shared_reported_cached_tokens" bigint DEFAULT 0 NOT NULL,
	"saved_money" double precision DEFAULT 0 NOT NULL,
	"last_at" bigint DEFAULT 0 NOT NULL,
	"share" double precision GENERATED ALWAYS AS (case
    when shared_reported_prompt_tokens >= 10000
      then shared_reported_cached_tokens::double precision / shared_reported_prompt_tokens
    when shared_reported_prompt_tokens = 0 and shared_prompt_tokens >= 10000
      then shared_expected_tokens::double precision / shared_prompt_tokens end) STORED
);
--> statement-breakpoint
CREATE TABLE "memstem"."usage_deleted_users" (
	"digest" text PRIMARY KEY NOT NULL,
	"at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memstem"."usage_groups" (
	"id" bigint PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"model" text NOT NULL,
	"engine" text NOT NULL,
	"layout" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memstem"."usage_marks" (
	"name" text PRIMARY KEY NOT NULL,
	"text" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memstem"."usage_notes" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "memstem"."usage_notes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"tenant" text,
	"number" bigint NOT NULL,
	"at" bigint NOT NULL,
	"kind" text NOT NULL,
	"label" text NOT NULL,
	"model" text
);
--> statement-breakpoint
CREATE TABLE "memstem"."usage_prompts" (
	"id" bigint PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"number" bigint NOT NULL,
	"user_id" bigint NOT NULL,
	"conversation_id" bigint,
	"group_id" bigint NOT NULL,
	"policy" text NOT NULL,
	"retention" text NOT NULL,
	"request" text NOT NULL,
	"at" bigint NOT NULL,
	"epoch_began" text,
	"epoch_prompts" bigint,
	"prompt_tokens" bigint NOT NULL,
	"expected_tokens" bigint NOT NULL,
	"carried_tokens" bigint NOT NULL,
	"planned_cause" text,
	"planned_tokens" bigint,
	"unserved_cause" text,
	"unserved_tokens" bigint,
	"reported_prompt_tokens" bigint,
	"reported_cached_tokens" bigint,
	"first_token_ms" double precision,
	"apart" text,
	"saved_money" double precision,
	"missed_money" double precision
);
--> statement-breakpoint
CREATE TABLE "memstem"."usage_state" (
	"id" integer PRIMARY KEY NOT NULL,
	"last_id" bigint NOT NULL,
	"kept" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memstem"."usage_sums" (
	"tenant" text NOT NULL,
	"step" bigint NOT NULL,
	"start" bigint NOT NULL,
	"group_id" bigint NOT NULL,
	"prompts" bigint DEFAULT 0 NOT NULL,
	"prompt_tokens" bigint DEFAULT 0 NOT NULL,
	"expected_tokens" bigint DEFAULT 0 NOT NULL,
	"uncached_tokens" bigint DEFAULT 0 NOT NULL,
	"missed_tokens" bigint DEFAULT 0 NOT NULL,
	"reported_prompts" bigint DEFAULT 0 NOT NULL,
	"reported_prompt_tokens" bigint DEFAULT 0 NOT NULL,
	"reported_cached_tokens" bigint DEFAULT 0 NOT NULL,
	"shared_prompt_tokens" bigint DEFAULT 0 NOT NULL,
	"shared_expected_tokens" bigint DEFAULT 0 NOT NULL,
	"shared_reported_prompt_tokens" bigint DEFAULT 0 NOT NULL,
	"shared_reported_cached_tokens" bigint DEFAULT 0 NOT NULL,
	"below_minimum_prompts" bigint DEFAULT 0 NOT NULL,
	"below_minimum_tokens" bigint DEFAULT 0 NOT NULL,
	"expired_prompts" bigint DEFAULT 0 NOT NULL,
	"expired_tokens" bigint DEFAULT 0 NOT NULL,
	"timed_prompts" bigint DEFAULT 0 NOT NULL,
	"first_token_ms" double precision DEFAULT 0 NOT NULL,
	"saved_money" double precision DEFAULT 0 NOT NULL,
	"missed_money" double precision DEFAULT 0 NOT NULL,
	CONSTRAINT "usage_sums_tenant_step_start_group_id_pk" PRIMARY KEY("tenant","step","start","group_id")
);
--> statement-breakpoint
CREATE TABLE "memstem"."usage_tenants" (
	"tenant" text PRIMARY KEY NOT NULL,
	"prompts" bigint DEFAULT 0 NOT NULL,
	"notes" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memstem"."usage_times" (
	"tenant" text NOT NULL,
	"step" bigint NOT NULL,
	"start" bigint NOT NULL,
	"group_id" bigint NOT NULL,
	"bin" integer NOT NULL,
	"prompts" bigint NOT NULL,
	CONSTRAINT "usage_times_tenant_step_start_group_id_bin_pk" PRIMARY KEY("tenant","step","start","group_id","bin")
);
--> statement-breakpoint
CREATE TABLE "memstem"."usage_users" (
	"id" bigint PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"name" text NOT NULL,
	"agent" text NOT NULL,
	"conversations" bigint DEFAULT 0 NOT NULL,
	"prompts" bigint DEFAULT 0 NOT NULL,
	"prompt_tokens" bigint DEFAULT 0 NOT NULL,
	"uncached_tokens" bigint DEFAULT 0 NOT NULL,
	"missed_tokens" bigint DEFAULT 0 NOT NULL,
	"shared_prompt_tokens" bigint DEFAULT 0 NOT NULL,
	"shared_expected_tokens" bigint DEFAULT 0 NOT NULL,
	"shared_reported_prompt_tokens" bigint DEFAULT 0 NOT NULL,
	"shared_reported_cached_tokens" bigint DEFAULT 0 NOT NULL,
	"saved_money" double precision DEFAULT 0 NOT NULL,
	"last_at" bigint DEFAULT 0 NOT NULL,
	"share" double precision GENERATED ALWAYS AS (case
    when shared_reported_prompt_tokens >= 10000
      then shared_reported_cached_tokens::double precision / shared_reported_prompt_tokens
    when shared_reported_prompt_tokens = 0 and shared_prompt_tokens >= 10000
      then shared_expected_tokens::double precision / shared_prompt_tokens end) STORED
);
--> statement-breakpoint
CREATE INDEX "usage_batches_by_time" ON "memstem"."usage_batches" USING btree ("at");--> statement-breakpoint
CREATE INDEX "usage_causes_by_start" ON "memstem"."usage_causes" USING btree ("step","start");--> statement-breakpoint
CREATE UNIQUE INDEX "usage_conversations_by_name" ON "memstem"."usage_conversations" USING btree ("user_id","name");--> statement-breakpoint
CREATE INDEX "usage_conversations_by_missed" ON "memstem"."usage_conversations" USING btree ("tenant","missed_tokens");--> statement-breakpoint
CREATE INDEX "usage_conversations_by_share" ON "memstem"."usage_conversations" USING btree ("tenant","share") WHERE "memstem"."usage_conversations"."share" is not null;--> statement-breakpoint
CREATE INDEX "usage_conversations_by_time" ON "memstem"."usage_conversations" USING btree ("tenant","last_at");--> statement-breakpoint
CREATE UNIQUE INDEX "usage_groups_by_name" ON "memstem"."usage_groups" USING btree ("tenant","model","engine","layout");--> statement-breakpoint
CREATE INDEX "usage_notes_by_time" ON "memstem"."usage_notes" USING btree ("tenant","at");--> statement-breakpoint
CREATE INDEX "usage_notes_by_age" ON "memstem"."usage_notes" USING btree ("at");--> statement-breakpoint
CREATE UNIQUE INDEX "usage_prompts_by_request" ON "memstem"."usage_prompts" USING btree ((user_id::text || ' ' || request));--> statement-breakpoint
CREATE UNIQUE INDEX "usage_prompts_by_number" ON "memstem"."usage_prompts" USING btree ("tenant","number");--> statement-breakpoint
CREATE INDEX "usage_prompts_by_user" ON "memstem"."usage_prompts" USING btree ("user_id","number");--> statement-breakpoint
CREATE INDEX "usage_prompts_by_conversation" ON "memstem"."usage_prompts" USING btree ("conversation_id","number") WHERE "memstem"."usage_prompts"."conversation_id" is not null;--> statement-breakpoint
CREATE INDEX "usage_prompts_by_group" ON "memstem"."usage_prompts" USING btree ("group_id","number");--> statement-breakpoint
CREATE INDEX "usage_prompts_by_planned" ON "memstem"."usage_prompts" USING btree ("tenant","planned_cause","number") WHERE "memstem"."usage_prompts"."planned_cause" is not null;--> statement-breakpoint
CREATE INDEX "usage_prompts_by_unserved" ON "memstem"."usage_prompts" USING btree ("tenant","unserved_cause","number") WHERE "memstem"."usage_prompts"."unserved_cause" is not null;--> statement-breakpoint
CREATE INDEX "usage_sums_by_start" ON "memstem"."usage_sums" USING btree ("step","start");--> statement-breakpoint
CREATE INDEX "usage_times_by_start" ON "memstem"."usage_times" USING btree ("step","start");--> statement-breakpoint
CREATE UNIQUE INDEX "usage_users_by_name" ON "memstem"."usage_users" USING btree ("tenant","name","agent");--> statement-breakpoint
CREATE INDEX "usage_users_by_missed" ON "memstem"."usage_users" USING btree ("tenant","missed_tokens");--> statement-breakpoint
CREATE INDEX "usage_users_by_share" ON "memstem"."usage_users" USING btree ("tenant","share") WHERE "memstem"."usage_users"."share" is not null;--> statement-breakpoint
CREATE INDEX "usage_users_by_time" ON "memstem"."usage_users" USING btree ("tenant","last_at");--> statement-breakpoint
INSERT INTO "memstem"."usage_state" ("id", "last_id", "kept") VALUES (1, 0, 0);
