//: what: a typed JSON service on the loopback interface and its client
//: stdout: added 1, listed ["write tests"], refused 422, unknown 404
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

interface Task { id: number; title: string }
type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<unknown>;

const tasks: Task[] = [];
const isTask = (value: unknown): value is Pick<Task, 'title'> =>
  typeof value === 'object' && value !== null && typeof (value as Task).title === 'string';

const routes: Record<string, Handler> = {
  'GET /tasks': async () => tasks,
  'POST /tasks': async (request, response) => {
    let text = '';
    for await (const chunk of request)
      text += chunk;
    const body: unknown = JSON.parse(text);
    if (!isTask(body)) {
      response.statusCode = 422;
      return { error: 'no title' };
    }
    const task: Task = { id: tasks.length + 1, title: body.title };
    tasks.push(task);
    return task;
  },
};

const server = createServer(async (request, response) => {
  const handler = routes[`${request.method} ${request.url}`];
  const value = handler ? await handler(request, response) : (response.statusCode = 404, null);
  response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const post = (body: unknown): Promise<Response> => fetch(`${base}/tasks`, { method: 'POST', body: JSON.stringify(body) });

const added = await (await post({ title: 'write tests' })).json() as Task;
const refused = (await post({})).status;
const listed = (await (await fetch(`${base}/tasks`)).json() as Task[]).map(({ title }) => title);
const unknown = (await fetch(`${base}/none`)).status;
server.closeAllConnections();
server.close();
console.log(`added ${added.id}, listed ${JSON.stringify(listed)}, refused ${refused}, unknown ${unknown}`);
