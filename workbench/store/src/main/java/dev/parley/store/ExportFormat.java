package dev.parley.store;

/** Formats of files that other programs read. */
public enum ExportFormat {
    CSV("csv", "FORMAT csv, HEADER"),
    /** One array of objects a file. */
    JSON("json", "FORMAT json, ARRAY true"),
    PARQUET("parquet", "FORMAT parquet");

    private final String suffix;
    private final String options;

    ExportFormat(String suffix, String options) {
        this.suffix = suffix;
        this.options = options;
    }

    public String suffix() {
        return suffix;
    }

    String options() {
        return options;
    }
}
