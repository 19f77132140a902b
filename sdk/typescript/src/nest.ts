/** A module for NestJS, on Express and on Fastify: a global guard, and decorators for single handlers. */
import {
  type ArgumentsHost,
  type CanActivate,
  Catch,
  type DynamicModule,
  type ExceptionFilter,
  type ExecutionContext,
  HttpException,
  SetMetadata,
} from "@nestjs/common";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { ServerResponse } from "node:http";
import { type ExpressRequest, factsOf } from "./express.js";
import { factsOf as fastifyFactsOf, routerSettings } from "./fastify.js";
import { Guard, type GuardSettings } from "./middleware/guard.js";
import type { Refusal } from "./middleware/render.js";

// The platform's request and response: applications name their types, `settle: (request: Request, response: Response) => …`.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Platform = any;

export type NestSettings = GuardSettings<Platform, Platform>;

const SKIPS = "tollgate:skip";
const COSTS = "tollgate:cost";

/** On a controller or a handler: not limited. */
export const SkipTollgate = (): MethodDecorator & ClassDecorator => SetMetadata(SKIPS, true);

/** On a controller or a handler: what a call costs. */
export const Cost = (units: number): MethodDecorator & ClassDecorator => SetMetadata(COSTS, units);

/** A refused request. Filters of the application may catch it as any `HttpException`; else the caller gets the server's own words. */
export class RateLimited extends HttpException {
  constructor(readonly refusal: Refusal) {
    super(refusal.body, refusal.status);
  }
}

/** Guards of authentication that are registered before this one have set `request.user` when `identify` is called. */
export class TollgateGuard implements CanActivate {
  private readonly guard: Guard<Platform, Platform>;
  private readonly costs = new WeakMap<object, number>();

  constructor(settings: NestSettings = {}) {
    const cost = async (request: object): Promise<number> => {
      const usual = typeof settings.cost === "function" ? await settings.cost(request) : settings.cost;
      return this.costs.get(request) ?? usual ?? 1;
    };
    this.guard = new Guard<Platform, Platform>({ ...settings, cost });
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (context.getType() !== "http" || metadata(context, SKIPS) === true) return true;
    const request: ExpressRequest | FastifyRequest = context.switchToHttp().getRequest();
    const response: ServerResponse | FastifyReply = context.switchToHttp().getResponse();
    const raw = "raw" in response ? response.raw : response;
    const cost = metadata(context, COSTS);
    if (typeof cost === "number") this.costs.set(request, cost);
    const facts = "raw" in request ? fastifyFactsOf(request, routerSettings(request.server)) : factsOf(request);
    const admission = await this.guard.admit(request, facts);
    if (admission.refusal !== undefined) throw new RateLimited(admission.refusal);
    if (raw.destroyed) {
      await admission.settle(undefined); // the caller has gone while the server was asked
      return false;
    }
    for (const [name, value] of admission.fields) setField(response, name, value);
    raw.once("close", () => void admission.settle(response));
    return true;
  }
}

/** Writes a refusal byte by byte as the server did. */
@Catch(RateLimited)
export class RateLimitedFilter implements ExceptionFilter<RateLimited> {
  catch({ refusal }: RateLimited, host: ArgumentsHost): void {
    const response: ServerResponse | FastifyReply = host.switchToHttp().getResponse();
    for (const [name, value] of refusal.fields) setField(response, name, value);
    if ("raw" in response) {
      response.code(refusal.status).send(Buffer.from(refusal.body)); // a text would get a charset
    } else {
      response.statusCode = refusal.status;
      response.end(refusal.body);
    }
  }
}

/** `imports: [TollgateModule.forRoot({ … })]` protects every handler of the application. */
export class TollgateModule {
  static forRoot(settings: NestSettings = {}): DynamicModule {
    return {
      module: TollgateModule,
      // The names of APP_GUARD and APP_FILTER of @nestjs/core.
      providers: [
        { provide: "APP_GUARD", useValue: new TollgateGuard(settings) },
        { provide: "APP_FILTER", useClass: RateLimitedFilter },
      ],
    };
  }
}

function setField(response: ServerResponse | FastifyReply, name: string, value: string): void {
  if ("raw" in response) response.header(name, value);
  else response.setHeader(name, value);
}

/** What a decorator of the handler, or else of its controller, says. */
function metadata(context: ExecutionContext, name: string): unknown {
  const read = (Reflect as unknown as { getMetadata(name: string, target: object): unknown }).getMetadata;
  return read(name, context.getHandler()) ?? read(name, context.getClass());
}
