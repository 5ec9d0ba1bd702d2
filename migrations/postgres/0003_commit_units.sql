-- Commits units of different scopes in one round trip; see commit-at-once.ts. Another body is another function: instances of the version
-- before may still call this one. Each statement in it sees what was committed before it began, so what the locks were waited for.
-- "units" build on what their scopes have ("base_n", "base_sum"), "scopes" are new; both hold unless something of the user was deleted since.
-- Numbers in place of texts are places in "bodies". Gives the scopes of the units that were current; the others change nothing.
CREATE FUNCTION "memstem"."commit_units" (
  bucket_locks integer, buckets integer[], locks bigint[],
  units json, scopes json, records json, memories json, snapshots json, shared json, bodies text[]
) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  stored bigint[];
BEGIN
  PERFORM pg_advisory_xact_lock_shared(bucket_locks, b) FROM unnest(buckets) AS b;
  PERFORM pg_advisory_xact_lock(l) FROM unnest(locks) AS l;

  stored := array(
    SELECT u.scope_id
    FROM json_to_recordset(units) AS u (scope_id bigint, tenant text, user_id text, agent_id text,
      base_n integer, base_sum bigint, bucket integer, users bigint, memories bigint)
    JOIN memstem.scopes s ON s.scope_id = u.scope_id
      AND s.tenant = u.tenant AND s.user_id = u.user_id AND s.agent_id = u.agent_id
    JOIN LATERAL (SELECT n, sum FROM memstem.journal WHERE scope_id = u.scope_id ORDER BY n DESC LIMIT 1) j
      ON j.n = u.base_n AND j.sum = u.base_sum
    LEFT JOIN memstem.deletions d ON d.bucket = u.bucket
    WHERE u.users IS NULL OR (coalesce(d.users, 0) = u.users AND coalesce(d.memories, 0) = u.memories));

  IF scopes IS NOT NULL THEN
    WITH begun AS (
      INSERT INTO memstem.scopes (scope_id, tenant, user_id, agent_id, created_at) OVERRIDING SYSTEM VALUE
      SELECT u.scope_id, u.tenant, u.user_id, u.agent_id, u.created_at
      FROM json_to_recordset(scopes) AS u (scope_id bigint, tenant text, user_id text, agent_id text,
        created_at bigint, bucket integer, users bigint, memories bigint)
      LEFT JOIN memstem.deletions d ON d.bucket = u.bucket
      WHERE u.users IS NULL OR (coalesce(d.users, 0) = u.users AND coalesce(d.memories, 0) = u.memories)
      ON CONFLICT DO NOTHING
      RETURNING scope_id)
    SELECT stored || array_agg(scope_id) INTO stored FROM begun;
  END IF;

  INSERT INTO memstem.journal (scope_id, n, kind, turn, turns, conversation, request_id, leaf, at, sum, changes, said)
  SELECT r.scope_id, r.n, r.kind, r.turn, r.turns, r.conversation, r.request_id, r.leaf, r.at, r.sum, bodies[r.changes], bodies[r.said]
  FROM json_to_recordset(records) AS r (scope_id bigint, n integer, kind smallint, turn integer, turns integer, conversation bigint,
    request_id text, leaf bigint, at bigint, sum bigint, changes integer, said integer)
  WHERE r.scope_id = ANY (stored);

  IF memories IS NOT NULL THEN
    INSERT INTO memstem.known_memories (scope_id, hashes)
    SELECT r.scope_id, r.hashes FROM json_to_recordset(memories) AS r (scope_id bigint, hashes integer[])
    WHERE r.scope_id = ANY (stored);
  END IF;

  IF snapshots IS NOT NULL THEN
    INSERT INTO memstem.snapshots (scope_id, n, sum, data)
    SELECT r.scope_id, r.n, r.sum, bodies[r.data]
    FROM json_to_recordset(snapshots) AS r (scope_id bigint, n integer, sum bigint, data integer)
    WHERE r.scope_id = ANY (stored)
    ON CONFLICT (scope_id) DO UPDATE SET n = excluded.n, sum = excluded.sum, data = excluded.data;
  END IF;

  IF shared IS NOT NULL THEN
    INSERT INTO memstem.instructions (scope_id, digest, messages)
    SELECT r.scope_id, r.digest, bodies[r.messages]
    FROM json_to_recordset(shared) AS r (scope_id bigint, digest text, messages integer)
    WHERE r.scope_id = ANY (stored)
    ON CONFLICT (scope_id, digest) DO NOTHING;
  END IF;

  RETURN QUERY SELECT unnest(stored);
END;
$$;
