-- Sends the requests of a file, one after the other and from the start again, and reports as JSON.
-- Arguments: the file, in which a NUL follows each request.

local requests = {}
local position = 0

function init(arguments)
  local file = assert(io.open(arguments[1], 'rb'))
  for text in file:read('*a'):gmatch('([^%z]+)') do
    requests[#requests + 1] = text
  end
  file:close()
end

function request()
  position = position % #requests + 1
  return requests[position]
end

function done(summary, latency)
  local failed = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format(
    '\n{"requests":%d,"seconds":%f,"p50":%f,"p99":%f,"slowest":%f,"refused":%d,"failed":%d}\n',
    summary.requests, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3,
    summary.errors.status, failed
  ))
end
