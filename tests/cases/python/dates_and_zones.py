#: what: time zones, daylight saving, ISO weeks, calendars and parsing of dates
#: stdout: Oslo 13:00 Kolkata 17:30, gap 23 h, week 2020-W53, leap 29, parsed 2024-03-01
import calendar
import time
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo, available_timezones

noon = datetime(2024, 1, 15, 12, 0, tzinfo=timezone.utc)
oslo, kolkata = noon.astimezone(ZoneInfo("Europe/Oslo")), noon.astimezone(ZoneInfo("Asia/Kolkata"))
assert "America/New_York" in available_timezones()

start = datetime(2024, 3, 31, 0, 0, tzinfo=ZoneInfo("Europe/Oslo"))
end = datetime(2024, 4, 1, 0, 0, tzinfo=ZoneInfo("Europe/Oslo"))
hours = (end.astimezone(timezone.utc) - start.astimezone(timezone.utc)) / timedelta(hours=1)
year, week, _ = date(2021, 1, 3).isocalendar()
leap = calendar.monthrange(2024, 2)[1]
parsed = datetime.strptime("1 March 2024", "%d %B %Y").date()
assert datetime.fromisoformat("2024-03-01T10:00:00+02:00").utcoffset() == timedelta(hours=2)
# 1500 is a year without the Gregorian calendar's exceptions, and before the epoch.
assert date(1500, 1, 1).toordinal() < date(1970, 1, 1).toordinal()

before = time.monotonic()
time.sleep(0.01)
assert time.monotonic() - before >= 0.01 and time.time() > 1_600_000_000
print(f"Oslo {oslo:%H:%M} Kolkata {kolkata:%H:%M}, gap {hours:.0f} h, week {year}-W{week}, leap {leap}, parsed {parsed}")
