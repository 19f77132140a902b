-- Ids and names of rules: 1 to 64 letters, digits, '.', '_' and '-'; ids are unique, upper and lower case aside.
-- Rows that are there keep theirs and stay in force; a name that is not there yet must be of this form. Tollgate checks
-- what it writes itself.

CREATE INDEX rate_limit_rules_folded ON rate_limit_rules (namespace, lower(rule_id));

CREATE TRIGGER rate_limit_rules_named BEFORE INSERT ON rate_limit_rules
WHEN (SELECT writing FROM tollgate_state) = 0
 AND NOT EXISTS (SELECT 1 FROM rate_limit_rules WHERE namespace = NEW.namespace AND rule_id = NEW.rule_id) BEGIN
    SELECT RAISE(ABORT, 'rule_id: use 1 to 64 letters, digits, ".", "_" and "-"')
    WHERE length(NEW.rule_id) > 64 OR NEW.rule_id GLOB '*[^A-Za-z0-9._-]*';
    SELECT RAISE(ABORT, 'name: use 1 to 64 letters, digits, ".", "_" and "-"')
    WHERE length(NEW.name) > 64 OR NEW.name GLOB '*[^A-Za-z0-9._-]*';
    SELECT RAISE(ABORT, 'rule_id: another rule of this namespace has this id in other upper and lower case')
    WHERE EXISTS (SELECT 1 FROM rate_limit_rules WHERE namespace = NEW.namespace AND lower(rule_id) = lower(NEW.rule_id));
END;

CREATE TRIGGER rate_limit_rules_renamed BEFORE UPDATE OF namespace, rule_id, name ON rate_limit_rules
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    SELECT RAISE(ABORT, 'rule_id: use 1 to 64 letters, digits, ".", "_" and "-"')
    WHERE NEW.rule_id <> OLD.rule_id AND (length(NEW.rule_id) > 64 OR NEW.rule_id GLOB '*[^A-Za-z0-9._-]*');
    SELECT RAISE(ABORT, 'name: use 1 to 64 letters, digits, ".", "_" and "-"')
    WHERE NEW.name <> OLD.name AND (length(NEW.name) > 64 OR NEW.name GLOB '*[^A-Za-z0-9._-]*');
    SELECT RAISE(ABORT, 'rule_id: another rule of this namespace has this id in other upper and lower case')
    WHERE (NEW.rule_id <> OLD.rule_id OR NEW.namespace <> OLD.namespace)
      AND EXISTS (SELECT 1 FROM rate_limit_rules WHERE namespace = NEW.namespace AND lower(rule_id) = lower(NEW.rule_id)
                  AND number <> OLD.number);
END;

-- The Unicode form in which values of a namespace are compared and counted.
ALTER TABLE rate_limit_namespaces ADD COLUMN normalize TEXT NOT NULL DEFAULT 'none'
    CONSTRAINT namespace_normalize CHECK (normalize IN ('none', 'nfc', 'nfkc'));
