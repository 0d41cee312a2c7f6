#: what: a table read from CSV, grouped, joined, resampled and written again with pandas
#: needs: pandas
#: stdout: {'north': 30, 'south': 70} best south monthly [60, 40]
#: files: summary.csv
import io

import pandas as pd

SALES = """date,region,amount
2024-01-05,north,10
2024-01-20,south,50
2024-02-03,north,20
2024-02-17,south,20
"""
MANAGERS = pd.DataFrame({"region": ["north", "south"], "manager": ["Ada", "Grace"]})

sales = pd.read_csv(io.StringIO(SALES), parse_dates=["date"])
by_region = sales.groupby("region")["amount"].sum()
joined = by_region.reset_index().merge(MANAGERS, on="region")
assert list(joined["manager"]) == ["Ada", "Grace"]
monthly = sales.set_index("date")["amount"].resample("MS").sum()
joined["share"] = joined["amount"] / joined["amount"].sum()
joined.to_csv("summary.csv", index=False)
assert pd.read_csv("summary.csv")["share"].round(2).tolist() == [0.3, 0.7]
wide = sales.pivot_table(index=sales["date"].dt.month, columns="region", values="amount", aggfunc="sum")
assert wide.loc[2, "south"] == 20 and sales.eval("amount * 2").sum() == 200
print(by_region.to_dict(), "best", by_region.idxmax(), "monthly", monthly.tolist())
