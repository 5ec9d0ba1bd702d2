CREATE TABLE "memprefix"."api_keys" (
	"id" text PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"secret_digest" text NOT NULL,
	"label" text,
	"created_at" bigint NOT NULL,
	"revoked_at" bigint
);
--> statement-breakpoint
CREATE TABLE "memprefix"."deletions" (
	"bucket" integer PRIMARY KEY NOT NULL,
	"users" integer NOT NULL,
	"memories" integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memprefix"."digest_keys" (
	"id" integer PRIMARY KEY NOT NULL,
	"key" "bytea" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memprefix"."first_token_times" (
	"engine" text NOT NULL,
	"number" integer NOT NULL,
	"uncached_tokens" integer NOT NULL,
	"cached_tokens" integer NOT NULL,
	"ms" double precision NOT NULL,
	CONSTRAINT "first_token_times_engine_number_pk" PRIMARY KEY("engine","number")
);
--> statement-breakpoint
CREATE TABLE "memprefix"."forgotten_memories" (
	"tenant" text NOT NULL,
	"user_id" text NOT NULL,
	"memory_id" text NOT NULL,
	CONSTRAINT "forgotten_memories_tenant_user_id_memory_id_pk" PRIMARY KEY("tenant","user_id","memory_id")
);
--> statement-breakpoint
CREATE TABLE "memprefix"."instructions" (
	"scope_id" bigint NOT NULL,
	"digest" text NOT NULL,
	"messages" text NOT NULL,
	CONSTRAINT "instructions_scope_id_digest_pk" PRIMARY KEY("scope_id","digest")
);
--> statement-breakpoint
CREATE TABLE "memprefix"."journal" (
	"seq" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "memprefix"."journal_seq_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"scope_id" bigint NOT NULL,
	"n" integer NOT NULL,
	"kind" smallint NOT NULL,
	"turn" integer NOT NULL,
	"turns" integer NOT NULL,
	"conversation" bigint,
	"request_id" text,
	"leaf" bigint,
	"at" bigint NOT NULL,
	"sum" bigint NOT NULL,
	"changes" text,
	"said" text
);
--> statement-breakpoint
CREATE TABLE "memprefix"."known_memories" (
	"scope_id" bigint NOT NULL,
	"hashes" integer[] NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memprefix"."responses" (
	"scope_id" bigint NOT NULL,
	"id" text NOT NULL,
	"tenant" text NOT NULL,
	"used" bigint NOT NULL,
	"request_id" text NOT NULL,
	CONSTRAINT "responses_scope_id_id_pk" PRIMARY KEY("scope_id","id")
);
--> statement-breakpoint
CREATE TABLE "memprefix"."scopes" (
	"scope_id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "memprefix"."scopes_scope_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"tenant" text NOT NULL,
	"user_id" text NOT NULL,
	"agent_id" text NOT NULL,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memprefix"."snapshots" (
	"scope_id" bigint PRIMARY KEY NOT NULL,
	"n" integer NOT NULL,
	"sum" bigint NOT NULL,
	"data" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memprefix"."source_deletions" (
	"tenant" text NOT NULL,
	"user_id" text NOT NULL,
	"memory_id" text NOT NULL,
	CONSTRAINT "source_deletions_tenant_user_id_memory_id_pk" PRIMARY KEY("tenant","user_id","memory_id")
);
--> statement-breakpoint
CREATE TABLE "memprefix"."tenants" (
	"tenant" text PRIMARY KEY NOT NULL,
	"cache_secret" text NOT NULL,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memprefix"."usage_deleted_users" (
	"digest" text PRIMARY KEY NOT NULL,
	"at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memprefix"."usage_marks" (
	"name" text PRIMARY KEY NOT NULL,
	"text" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memprefix"."usage_notes" (
	"tenant" text NOT NULL,
	"number" bigint NOT NULL,
	"at" bigint NOT NULL,
	"kind" text NOT NULL,
	"label" text NOT NULL,
	"model" text,
	CONSTRAINT "usage_notes_tenant_number_pk" PRIMARY KEY("tenant","number")
);
--> statement-breakpoint
CREATE TABLE "memprefix"."usage_prompts" (
	"tenant" text NOT NULL,
	"number" bigint NOT NULL,
	"user_id" text NOT NULL,
	"agent_id" text NOT NULL,
	"request_id" text NOT NULL,
	"conversation_id" text,
	"at" bigint NOT NULL,
	"model" text NOT NULL,
	"engine" text NOT NULL,
	"layout" text NOT NULL,
	"policy" text NOT NULL,
	"retention" text NOT NULL,
	"epoch_began" text,
	"epoch_prompts" bigint,
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
	CONSTRAINT "usage_prompts_tenant_number_pk" PRIMARY KEY("tenant","number")
);
--> statement-breakpoint
ALTER TABLE "memprefix"."api_keys" ADD CONSTRAINT "api_keys_tenant_tenants_tenant_fk" FOREIGN KEY ("tenant") REFERENCES "memprefix"."tenants"("tenant") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "journal_by_scope" ON "memprefix"."journal" USING btree ("scope_id","n");--> statement-breakpoint
CREATE INDEX "journal_by_conversation" ON "memprefix"."journal" USING btree ("scope_id","conversation","n") WHERE "memprefix"."journal"."conversation" is not null;--> statement-breakpoint
CREATE INDEX "journal_by_request" ON "memprefix"."journal" USING btree ("request_id","scope_id") WHERE "memprefix"."journal"."request_id" is not null;--> statement-breakpoint
CREATE INDEX "known_memories_by_scope" ON "memprefix"."known_memories" USING btree ("scope_id");--> statement-breakpoint
CREATE INDEX "responses_by_use" ON "memprefix"."responses" USING btree ("tenant","used");--> statement-breakpoint
CREATE UNIQUE INDEX "scopes_by_name" ON "memprefix"."scopes" USING btree ("tenant","user_id","agent_id");--> statement-breakpoint
CREATE UNIQUE INDEX "usage_prompts_by_request" ON "memprefix"."usage_prompts" USING btree ("tenant","user_id","agent_id","request_id");--> statement-breakpoint
CREATE INDEX "usage_prompts_by_time" ON "memprefix"."usage_prompts" USING btree ("tenant","at");--> statement-breakpoint
CREATE INDEX "usage_prompts_by_age" ON "memprefix"."usage_prompts" USING btree ("at");