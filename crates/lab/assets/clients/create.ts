// Creates a rule with the client that openapi-generator made, reads it again and deletes it. TOLLGATE_ADMIN, TOLLGATE_TOKEN.
import { Configuration, RulesApi } from "./client";

async function main(): Promise<void> {
  const { TOLLGATE_ADMIN, TOLLGATE_TOKEN } = process.env;
  const rules = new RulesApi(new Configuration({ basePath: TOLLGATE_ADMIN, accessToken: TOLLGATE_TOKEN }));
  const rule = { ruleId: "from-typescript", limit: { requests: 10, window: "1m" } };
  const made = await rules.createRule({ createRuleRequest: rule });
  if (!("ruleId" in made) || made.ruleId !== "from-typescript") throw new Error(JSON.stringify(made));
  const read = await rules.getRuleRaw({ ruleId: "from-typescript" });
  await rules.deleteRule({ ruleId: "from-typescript", ifMatch: read.raw.headers.get("ETag") ?? undefined });
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
