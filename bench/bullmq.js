// SPDX-License-Identifier: Apache-2.0
// BullMQ on the same Valkey: jobs are added in bulk, then worked by one worker with a handler that does
// nothing. Prints the line of JSON that the driver prints. Arguments: NAME=VALUE, and a folder to load
// the packages from.
'use strict';
const fs = require('fs');
const { createRequire } = require('module');

const given = Object.fromEntries(process.argv.slice(2).map((text) => text.split('=')));
const load = createRequire(given.packages + '/');
const { Queue, Worker } = load('bullmq');
const IORedis = load('ioredis');

const jobs = Number(given.jobs);
const inFlight = Number(given.in_flight);
const size = Number(given.payload || 100);
const QUEUE = 'bench';

function connect() {
  return new IORedis({ host: '127.0.0.1', port: Number(given.port), maxRetriesPerRequest: null });
}

// User and system time of the server, microseconds; the kernel tells it in hundredths of a second.
function serverTime() {
  const fields = fs.readFileSync(`/proc/${given.pid}/stat`, 'utf8').replace(/.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10000;
}

function readClock() {
  const cpu = process.cpuUsage();
  return { wall: Number(process.hrtime.bigint()) / 1000, server: serverTime(), client: cpu.user + cpu.system };
}

function perJob(from, to, out, name) {
  for (const [what, suffix] of [['wall', '_us'], ['server', '_server_us'], ['client', '_client_us']]) {
    // a number without a point would be taken for something that was not measured
    out[name + suffix] = (to[what] - from[what]) / jobs + 1e-9;
  }
}

async function addAll(queue, count) {
  for (let first = 0; first < count; first += inFlight) {
    const bulk = [];
    for (let i = first; i < Math.min(first + inFlight, count); i++) {
      bulk.push({ name: 'job', data: String(i).padStart(size, '0'), opts: { removeOnComplete: true } });
    }
    await queue.addBulk(bulk);
  }
}

// Resolves when every job was handled once and completed once.
function workAll(connection, count) {
  const handled = new Uint8Array(count);
  const completed = new Uint8Array(count);
  let left = count;
  return new Promise((resolve, reject) => {
    const mark = (marks, job, what) => {
      const number = Number(job.data);
      if (!(number < count) || marks[number]++) {
        reject(new Error(`job ${job.data} was ${what} twice, or there is none`));
      }
    };
    const worker = new Worker(QUEUE, async (job) => mark(handled, job, 'handled'), { connection, concurrency: inFlight });
    worker.on('failed', (job, error) => reject(error));
    worker.on('error', reject);
    worker.on('completed', (job) => {
      mark(completed, job, 'completed');
      if (--left === 0) {
        resolve(worker);
      }
    });
  });
}

async function main() {
  const connections = [connect(), connect()];
  const queue = new Queue(QUEUE, { connection: connections[0] });
  await queue.waitUntilReady();
  const out = { cell: given.cell, round: Number(given.round), jobs };
  // what runs first is not compiled yet
  const warmUp = Math.min(jobs, 2000);
  await addAll(queue, warmUp);
  await (await workAll(connections[1], warmUp)).close();
  const start = readClock();
  await addAll(queue, jobs);
  const added = readClock();
  const worker = await workAll(connections[1], jobs);
  const end = readClock();
  perJob(start, added, out, 'enqueue');
  perJob(added, end, out, 'work');
  perJob(start, end, out, 'job');
  const counts = await queue.getJobCounts();
  if (Object.values(counts).some((count) => count !== 0)) {
    throw new Error(`jobs are left: ${JSON.stringify(counts)}`);
  }
  await worker.close();
  await queue.obliterate({ force: true });
  await queue.close();
  for (const connection of connections) {
    connection.disconnect();
  }
  process.stdout.write(JSON.stringify(out) + '\n');
}

main().catch((error) => {
  process.stderr.write(`bench: ${given.cell}: ${error.message}\n`);
  process.exit(1);
});
