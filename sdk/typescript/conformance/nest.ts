import "reflect-metadata";
import { Controller, Get, HttpCode, Module, Param, Post, Res } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { Request, Response } from "express";
import type { AddressInfo } from "node:net";
import { SkipTollgate, TollgateModule } from "tollgate/nest";
import { COMPLETE, ESTIMATE, guardSettings, identity, settled } from "./settings.js";

@Controller()
class OrdersController {
  @SkipTollgate()
  @Get("health")
  health(): string {
    return "ok";
  }

  @Get("api/orders/:id")
  order(@Param("id") id: string): object {
    return { order: id };
  }

  @Post("api/orders")
  create(): object {
    return { created: true };
  }

  @Get("api/fail")
  async fail(): Promise<void> {
    throw new Error("this handler fails");
  }

  @Post("api/complete/:tokens")
  @HttpCode(200)
  async complete(@Param("tokens") text: string, @Res({ passthrough: true }) response: Response): Promise<object> {
    const tokens = Number(text);
    if (Number.isNaN(tokens)) throw new Error("this handler fails");
    response.set("X-Tokens", `${tokens}`);
    return { tokens };
  }
}

const completes = (request: Request): boolean => request.path.toLowerCase().startsWith(COMPLETE);

@Module({
  imports: [
    TollgateModule.forRoot({
      ...guardSettings,
      identify: (request: Request) => identity(request.headersDistinct["x-api-key"]),
      skip: completes,
    }),
    TollgateModule.forRoot({
      ...guardSettings,
      identify: (request: Request) => identity(request.headersDistinct["x-api-key"]),
      skip: (request: Request) => !completes(request),
      costs: ESTIMATE,
      settle: (_: Request, response: Response) => settled(response.getHeader("x-tokens") as string),
    }),
  ],
  controllers: [OrdersController],
})
class OrdersModule {}

export async function serveNest(): Promise<number> {
  const app = await NestFactory.create(OrdersModule, { logger: false });
  await app.listen(0, "127.0.0.1");
  return (app.getHttpServer().address() as AddressInfo).port;
}
