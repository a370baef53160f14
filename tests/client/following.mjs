// A client that writes and follows over a bad connection, and checks each step. It runs in Node and in browsers.

/** Return how many steps came, or throw what was wrong. */
export async function follow(kpg, url, token, batches) {
  const db = await kpg.connect(url, { token, timeout: 2_000 });
  const answer = await db.interest("n", { credit: 2 });
  const rowsAt = new Map(); // by time, the rows as text
  const rows = new Set();
  let steps = 0, resets = 0, written = -1;
  const seen = new Map();

  async function write() {
    for (let batch = 0; batch < batches; batch++) {
      const row = [batch, `text ${batch % 7}`];
      const changes = [{ relation: "n", rows: [row] }];
      if (batch >= 3) changes.push({ relation: "n", rows: [[batch - 3, `text ${(batch - 3) % 7}`]], diff: -1 });
      const time = await db.transact(changes, { origin: { writer: "javascript", batch } });
      for (const { rows: [changed], diff } of changes) diff === -1 ? rows.delete(String(changed)) : rows.add(String(changed));
      rowsAt.set(time, [...rows].sort().join("|"));
      written = time;
    }
  }

  async function read() {
    let upto = 0;
    while (written < 0 || rowsAt.size < batches || answer.upto <= written) {
      let step;
      try {
        step = await answer.next(500);
      } catch (error) {
        if (error.kind === "TimeNotReached") continue;
        throw error;
      }
      steps += 1;
      resets += step.reset;
      for (const { row, time, diff } of step.changes) {
        if (time >= step.upto || time < upto - 1) throw new Error(`a change at ${time} in a step from ${upto} to ${step.upto}`);
        seen.set(String(row), (seen.get(String(row)) ?? 0) + diff);
        if (![0, 1].includes(seen.get(String(row)))) throw new Error(`${row} came ${seen.get(String(row))} times`);
      }
      upto = step.upto;
      checks.push([step.upto - 1, [...seen].filter(([, count]) => count).map(([row]) => row).sort().join("|")]);
    }
  }

  const checks = [];
  await Promise.all([write(), read()]);
  for (const [time, text] of checks) {
    if (rowsAt.has(time) && rowsAt.get(time) !== text) throw new Error(`at ${time}: ${text} instead of ${rowsAt.get(time)}`);
  }
  const result = (await db.query("n")).rows.map(String).sort().join("|");
  const current = (await answer.rows()).map(String).sort().join("|");
  if (result !== current || result !== [...rows].sort().join("|")) throw new Error(`${result} instead of ${current}`);
  await answer.close();
  db.close();
  return { steps, resets };
}

/** Return values that went to the server and came back. */
export async function roundTrip(kpg, url, token) {
  const db = await kpg.connect(url, { token });
  await db.createRelation("brief", { x: "int64" });
  await db.dropRelation("brief");
  await db.createRelation("odd", { large: "int64", number: "float64", bytes: "binary", day: "date" });
  await db.insert("odd", [[2n ** 60n, NaN, new Uint8Array([0, 255]), { date: "2024-05-01" }]]);
  const [[large, number, bytes, day]] = (await db.query("odd")).rows;
  const error = await db.query("nothing_of_this_name").catch((failure) => failure.kind);
  db.close();
  const after = await db.ping().catch((failure) => failure.kind);
  return { large: String(large), number: String(number), bytes: [...bytes], day, error, after };
}
