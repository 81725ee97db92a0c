// Uses ioredis with its defaults against the port in its argument: it connects, pipelines, transacts under WATCH,
// subscribes and blocks. It ends with 0 if all of that is as with a server.
"use strict";

const assert = require("node:assert");
const { Redis } = require("ioredis");

async function use(port) {
  const client = new Redis(port, "127.0.0.1");
  assert.equal(await client.set("a", "1"), "OK");
  assert.equal(await client.get("a"), "1");
  assert.deepEqual(await client.mget("a", "none"), ["1", null]);
  await client.hset("h", { f: "v" });
  assert.deepEqual({ ...(await client.hgetall("h")) }, { f: "v" });

  const replies = await client.pipeline(Array.from({ length: 100 }, () => ["incr", "n"])).exec();
  assert.deepEqual(replies.at(-1), [null, 100]);

  await client.set("{t}n", 1);
  await client.watch("{t}n");
  const doubled = 2 * Number(await client.get("{t}n"));
  assert.deepEqual(await client.multi().set("{t}n", doubled).get("{t}n").exec(), [[null, "OK"], [null, "2"]]);
  const other = client.duplicate();
  await client.watch("{t}n");
  await other.set("{t}n", 100);
  assert.equal(await client.multi().set("{t}n", 0).exec(), null);

  const subscriber = client.duplicate();
  const message = new Promise((resolve) => subscriber.once("message", (_, text) => resolve(text)));
  await subscriber.subscribe("news");
  await other.publish("news", "hello");
  assert.equal(await message, "hello");

  setTimeout(() => other.rpush("list", "x"), 50);
  assert.deepEqual(await client.blpop("list", 10), ["list", "x"]);
  for (const connection of [subscriber, other, client]) await connection.quit();
}

use(Number(process.argv[2])).catch((error) => {
  console.error(error);
  process.exit(1);
});
