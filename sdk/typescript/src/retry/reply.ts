/** What is read of a response. */
export interface Reply {
  status: number;
  header(name: string): string | null;
  /** The start of the body; read only of a 400. */
  body(): Promise<string>;
}

/** Whether a response says "later": 429, 503, 403 with nothing remaining, 400 that names ThrottlingException. */
export async function saysLater(reply: Reply): Promise<boolean> {
  if (reply.status === 429 || reply.status === 503) return true;
  if (reply.status === 403) return reply.header("x-ratelimit-remaining")?.trim() === "0";
  return reply.status === 400 && (await reply.body()).includes("ThrottlingException");
}
