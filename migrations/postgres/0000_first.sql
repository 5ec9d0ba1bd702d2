CREATE TABLE "memprefix"."changes" (
	"scope_id" bigint NOT NULL,
	"version" bigint NOT NULL,
	"changes" text NOT NULL,
	CONSTRAINT "changes_scope_id_version_pk" PRIMARY KEY("scope_id","version")
);
--> statement-breakpoint
CREATE TABLE "memprefix"."conversations" (
	"scope_id" bigint NOT NULL,
	"id" text NOT NULL,
	"used_at" bigint NOT NULL,
	"forgotten_at" bigint,
	"sent_after" text,
	"opening" text,
	CONSTRAINT "conversations_scope_id_id_pk" PRIMARY KEY("scope_id","id")
);
--> statement-breakpoint
CREATE TABLE "memprefix"."keys" (
	"id" text PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"secret_digest" text NOT NULL,
	"label" text,
	"created_at" bigint NOT NULL,
	"revoked_at" bigint,
	"cache_secret" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memprefix"."messages" (
	"scope_id" bigint NOT NULL,
	"conversation_id" text NOT NULL,
	"key" text NOT NULL,
	"turn_id" bigint NOT NULL,
	"message" text NOT NULL,
	CONSTRAINT "messages_scope_id_conversation_id_key_pk" PRIMARY KEY("scope_id","conversation_id","key")
);
--> statement-breakpoint
CREATE TABLE "memprefix"."prompts" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "memprefix"."prompts_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"scope_id" bigint NOT NULL,
	"turn_id" bigint NOT NULL,
	"tenant" text NOT NULL,
	"user_id" text NOT NULL,
	"agent_id" text NOT NULL,
	"conversation_id" text,
	"request_id" text NOT NULL,
	"at" bigint NOT NULL,
	"model" text NOT NULL,
	"engine" text NOT NULL,
	"layout" text NOT NULL,
	"policy" text NOT NULL,
	"retention" text NOT NULL,
	"epoch_began" text,
	"epoch_prompts" bigint,
	"in_message_tokens" bigint,
	"in_system_tokens" bigint,
	"prompt_tokens" bigint NOT NULL,
	"expected_tokens" bigint NOT NULL,
	"uncached_tokens" bigint NOT NULL,
	"carried_tokens" bigint NOT NULL,
	"planned_cause" text,
	"planned_tokens" bigint,
	"miss_cause" text,
	"miss_tokens" bigint,
	"reported_prompt_tokens" bigint,
	"reported_cached_tokens" bigint,
	"first_token_ms" double precision,
	"first_token_bin" bigint,
	"apart" text,
	"saved_money" double precision,
	"missed_money" double precision,
	"law" text,
	"sample" bigint,
	"sample_uncached" bigint,
	"sample_cached" bigint,
	"sample_ms" double precision
);
--> statement-breakpoint
CREATE TABLE "memprefix"."requests" (
	"scope_id" bigint NOT NULL,
	"id" text NOT NULL,
	"turn_id" bigint NOT NULL,
	"at" bigint NOT NULL,
	"digest" text NOT NULL,
	"leaf" bigint NOT NULL,
	"answer" text NOT NULL,
	"report" text,
	"evicted" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "requests_scope_id_turn_id_pk" PRIMARY KEY("scope_id","turn_id")
);
--> statement-breakpoint
CREATE TABLE "memprefix"."scopes" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "memprefix"."scopes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"tenant" text NOT NULL,
	"user_id" text NOT NULL,
	"agent_id" text NOT NULL,
	"created_at" bigint NOT NULL,
	"version" bigint DEFAULT 0 NOT NULL,
	"snapshot_version" bigint DEFAULT 0 NOT NULL,
	"snapshot" text,
	"forgotten" text,
	"pending" text
);
--> statement-breakpoint
CREATE TABLE "memprefix"."turns" (
	"scope_id" bigint NOT NULL,
	"id" bigint NOT NULL,
	"conversation_id" text,
	"at" bigint NOT NULL,
	"head" text NOT NULL,
	"section" text,
	"sections" text,
	"response_id" text,
	"engine_conversation" text,
	"turn" text NOT NULL,
	CONSTRAINT "turns_scope_id_id_pk" PRIMARY KEY("scope_id","id")
);
--> statement-breakpoint
CREATE TABLE "memprefix"."writes" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "memprefix"."writes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"scope_id" bigint NOT NULL,
	"queue" text NOT NULL,
	"turn_id" bigint,
	"at" bigint NOT NULL,
	"exchanges" bigint NOT NULL,
	"addition" text NOT NULL,
	"held_until" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX "conversations_by_opening" ON "memprefix"."conversations" USING btree ("scope_id","opening");--> statement-breakpoint
CREATE UNIQUE INDEX "prompts_by_turn" ON "memprefix"."prompts" USING btree ("scope_id","turn_id");--> statement-breakpoint
CREATE INDEX "prompts_by_time" ON "memprefix"."prompts" USING btree ("tenant","at");--> statement-breakpoint
CREATE INDEX "prompts_by_sample" ON "memprefix"."prompts" USING btree ("law","sample") WHERE "memprefix"."prompts"."law" is not null;--> statement-breakpoint
CREATE INDEX "requests_by_id" ON "memprefix"."requests" USING btree ("id","scope_id");--> statement-breakpoint
CREATE UNIQUE INDEX "scopes_by_name" ON "memprefix"."scopes" USING btree ("tenant","user_id","agent_id");--> statement-breakpoint
CREATE INDEX "turns_by_conversation" ON "memprefix"."turns" USING btree ("scope_id","conversation_id","id");--> statement-breakpoint
CREATE INDEX "turns_by_response" ON "memprefix"."turns" USING btree ("scope_id","response_id") WHERE "memprefix"."turns"."response_id" is not null;--> statement-breakpoint
CREATE INDEX "turns_by_engine_conversation" ON "memprefix"."turns" USING btree ("scope_id","engine_conversation") WHERE "memprefix"."turns"."engine_conversation" is not null;--> statement-breakpoint
CREATE INDEX "single_turns_by_time" ON "memprefix"."turns" USING btree ("at") WHERE "memprefix"."turns"."conversation_id" is null;--> statement-breakpoint
CREATE INDEX "writes_by_queue" ON "memprefix"."writes" USING btree ("scope_id","queue","id");