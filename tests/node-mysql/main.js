// Does with mysql2 and mariadb what services do: statements with arguments, prepared or not, transactions,
// generated ids, streams, and pools.
"use strict";

const assert = require("node:assert");
const [library, host, port, user, password, database] = process.argv.slice(2);
const options = { host, port: Number(port), user, password, database, connectionLimit: 5 };

async function use(query, execute, connect, rowsOf) {
  await query("CREATE TABLE of_node (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(100))");
  for (let n = 1; n <= 10; n++) {
    const done = await execute("INSERT INTO of_node (a, b) VALUES (?, ?)", [n, `text '${n}' äöü€`]);
    assert.strictEqual(Number(rowsOf(done).insertId), n);
  }
  for (let n = 1; n <= 10; n++) {
    for (const way of [query, execute]) {
      const [row] = rowsOf(await way("SELECT a, b FROM of_node WHERE id = ?", [n]));
      assert.deepStrictEqual({ ...row }, { a: n, b: `text '${n}' äöü€` });
    }
  }
  const connection = await connect();
  await connection.beginTransaction();
  await connection.query("UPDATE of_node SET a = a + 100");
  const inside = rowsOf(await connection.query("SELECT CAST(SUM(a) AS CHAR) AS s FROM of_node"));
  assert.strictEqual(inside[0].s, "1055");
  await connection.rollback();
  await connection.release();
  const [behind] = rowsOf(await query("SELECT CAST(SUM(a) AS CHAR) AS s FROM of_node"));
  assert.strictEqual(behind.s, "55");
  const many = [];
  for (let n = 0; n < 200; n++) {
    many.push(query("SELECT ? AS n", [n]).then((found) => assert.strictEqual(Number(rowsOf(found)[0].n), n)));
  }
  await Promise.all(many);
  await assert.rejects(query("SELECT * FROM missing"), (error) => error.errno === 1146);
  await query("DROP TABLE of_node");
}

async function main() {
  if (library === "mysql2") {
    const pool = require("mysql2/promise").createPool(options);
    const first = (found) => found[0];
    await use(pool.query.bind(pool), pool.execute.bind(pool), pool.getConnection.bind(pool), first);
    await pool.end();
  } else {
    const pool = require("mariadb").createPool({ ...options, allowPublicKeyRetrieval: true });
    await use(pool.query.bind(pool), pool.execute.bind(pool), pool.getConnection.bind(pool), (found) => found);
    await pool.end();
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
