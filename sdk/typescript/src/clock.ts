/** Time as a value, so that tests move it. */
export interface Clock {
  /** Milliseconds of a clock that never steps back. */
  monotonicMs(): number;
  /** Milliseconds since 1970. */
  wallMs(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      if (signal?.aborted) return reject(signal.reason);
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", end);
        resolve();
      }, Math.min(ms, 2 ** 31 - 1));
      signal?.addEventListener("abort", end, { once: true });
    }),
};
