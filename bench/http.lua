-- For wrk: one request again and again.  Prints microseconds and how many requests took so long, then totals.
--
--   wrk ... -s http.lua URL -- BODY TEXT
--
-- Without a BODY it is a GET.  Each answer has to have the TEXT in it.

wrong = 0
local thread_of, wanted

function setup(thread)
   thread_of = thread
end

function init(args)
   wanted = args[2]
   if args[1] ~= "" then
      wrk.method = "POST"
      wrk.body = args[1]
      wrk.headers["Content-Type"] = "application/json"
   end
end

function response(status, _, body)
   if status ~= 200 or not body:find(wanted, 1, true) then
      wrong = wrong + 1
   end
end

function done(summary, latency)
   for i = 1, #latency do
      io.write("took ", table.concat({latency(i)}, " "), "\n")
   end
   local errors = summary.errors
   io.write(string.format("total %d %d %d\n", summary.duration, summary.requests,
                          thread_of:get("wrong") + errors.connect + errors.read + errors.write + errors.timeout))
end
