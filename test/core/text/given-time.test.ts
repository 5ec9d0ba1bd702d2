import { afterEach, describe, expect, it } from "vitest";
import { utcDay } from "../../../src/core/text/given-time.js";

describe("the day of a time, in UTC", () => {
  const machineZone = process.env["TZ"];
  afterEach(() => {
    if (machineZone === undefined) delete process.env["TZ"];
    else process.env["TZ"] = machineZone;
  });

  it.each([
    ["2023-05-08T23:30:00Z", "2023-05-08"],
    ["2023-05-08T13:56:01.275141-07:00", "2023-05-08"],
    ["2023-05-08T23:30:00-0730", "2023-05-09"],
    ["2023-05-08T01:30+02", "2023-05-07"],
    ["2023-05-08 23:30", "2023-05-08"],
    ["2023-05-08", "2023-05-08"],
    [1_683_588_600, "2023-05-08"],
    [1_683_588_600_000, "2023-05-08"],
    ["0099-01-01T00:00:00Z", "0099-01-01"],
    ["soon", null],
    ["", null],
    ["2023-02-30", null],
    ["2023-02-30T10:00:00Z", null],
    ["12023-05-08", null],
    [Number.NaN, null],
    [9e15, null],
  ])("of %j is %j, in every zone of the machine", (time, day) => {
    for (const zone of ["UTC", "America/Los_Angeles", "Asia/Tokyo"]) {
      process.env["TZ"] = zone;
      expect(utcDay(time)).toBe(day);
    }
  });
});
