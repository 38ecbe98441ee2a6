// Gives every request of the conformance suite to the server under test the home's token: the suite has no option for a
// header, and sends through three clients (fetch, undici, node:http). Loaded by `node --import`, from beside node_modules.
import http from "node:http";
import { getGlobalDispatcher, setGlobalDispatcher } from "undici";

const origin = process.env.MCP_BASE;
const authorization = `Bearer ${process.env.MCP_BEARER}`;

function extended(headers) {
  if (Array.isArray(headers)) return [...headers, "authorization", authorization];
  const pairs = headers?.[Symbol.iterator] ? Object.fromEntries(headers) : headers;
  return { ...pairs, authorization };
}

const withToken = (dispatch) => (options, handler) =>
  dispatch(String(options.origin) === origin ? { ...options, headers: extended(options.headers) } : options, handler);

setGlobalDispatcher(getGlobalDispatcher().compose(withToken));

const { request } = http;
http.request = (...given) => {
  const sent = request(...given);
  if (!sent.hasHeader("authorization")) sent.setHeader("authorization", authorization);
  return sent;
};
