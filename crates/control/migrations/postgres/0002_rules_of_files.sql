-- Overrides and switches may be of rules that stand in files: they refer to a rule by namespace and id, wherever it is.

ALTER TABLE rate_limit_overrides DROP CONSTRAINT IF EXISTS rate_limit_overrides_namespace_rule_id_fkey;

-- The switch of a single rule: a mode that holds instead of the rule's own until the row is deleted.
CREATE TABLE rate_limit_rule_modes (
    namespace  TEXT COLLATE "C" NOT NULL DEFAULT 'default',
    rule_id    TEXT COLLATE "C" NOT NULL,              -- the rule, in the database or in a file
    mode       TEXT        NOT NULL CONSTRAINT rule_mode_mode CHECK (mode IN ('enforce', 'shadow', 'off')),
    reason     TEXT        NOT NULL DEFAULT '',
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    version    BIGINT      NOT NULL DEFAULT 0,         -- the generation that changed it last
    PRIMARY KEY (namespace, rule_id)
);
