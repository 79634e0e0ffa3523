package dev.parley.transport.grpc;

/** How grpc-java is set up and used: what the variants differ in. */
enum GrpcUse {
    /** gRPC as the basics tutorial sets it up. Services and clients have records, as those with a domain model do. */
    STANDARD("grpc", "gRPC"),

    /**
     * The same with services and clients that work on generated messages, as the tutorial's do: no conversion is
     * charged to gRPC.
     */
    MESSAGES("grpc-messages", "gRPC, handlers on generated messages"),

    /** The settings that grpc.io's performance page names for Java. */
    TUNED("grpc-tuned", "gRPC, tuned");

    final String variant;
    final String title;

    GrpcUse(String variant, String title) {
        this.variant = variant;
        this.title = title;
    }

    boolean isTuned() {
        return this == TUNED;
    }
}
