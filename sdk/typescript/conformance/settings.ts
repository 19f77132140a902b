import type { ClientSettings, FallbackLimit, OnError } from "tollgate";

const { env } = process;

/** The settings of the client, as the driver gives them. */
export const clientSettings: ClientSettings = {
  onError: env["CONFORMANCE_ON_ERROR"] as OnError | undefined,
  fallback: env["CONFORMANCE_FALLBACK"] as FallbackLimit | undefined,
  timeoutMs: Number(env["CONFORMANCE_TIMEOUT_MS"] ?? 250),
  log: (message) => console.error(message),
};

/** Those of the middleware. */
export const guardSettings = {
  ...clientSettings,
  trustedProxies: env["CONFORMANCE_TRUSTED_PROXIES"]?.split(",") ?? [],
  shadow: env["CONFORMANCE_SHADOW"] === "1",
  cost: 1,
};

/** One key, if there is exactly one field of that name. */
export function identity(keys: string[] | undefined): { apiKey: string } | undefined {
  const [key, ...others] = keys ?? [];
  return key !== undefined && others.length === 0 && !key.includes(",") ? { apiKey: key } : undefined;
}

/** A path whose tokens are reserved and settled. */
export const COMPLETE = "/api/complete/";
export const ESTIMATE = { tokens: 100 };

export function settled(used: string | number | string[] | null | undefined): Record<string, number> {
  return { tokens: Number(used ?? 0) };
}
