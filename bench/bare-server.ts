// Owns: the limit to compare with: `node:http` on the same runtime, which answers every request with a fixed envelope.

import { createServer } from 'node:http';

const body =
  '{"status":200,"message":"Book retrieved successfully","data":{"id":1,"title":"The Hunger Games","author":"Suzanne Collins","year":2008}}';
const headers = {
  'content-type': 'application/json; charset=utf-8',
  'content-length': Buffer.byteLength(body),
};

const server = createServer((_request, response) => {
  response.writeHead(200, headers);
  response.end(body);
});
server.listen({ port: Number(process.env.PORT), host: process.env.HOST });
