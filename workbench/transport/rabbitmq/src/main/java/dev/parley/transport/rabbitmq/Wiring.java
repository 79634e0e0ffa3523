package dev.parley.transport.rabbitmq;

import java.util.LinkedHashMap;
import java.util.Map;

/** How client and server stand to the broker: what the variants differ in. */
enum Wiring {
    /** Source: RabbitMQ tutorial 6, Remote procedure call (Java), rabbitmq.com/tutorials/tutorial-six-java. */
    TUTORIAL("rabbitmq", "RabbitMQ RPC (JSON)", false, false, 1),

    /**
     * Nothing that the broker has not confirmed is taken for sent, and a request is acknowledged only when its reply is confirmed. Sources:
     * rabbitmq.com/docs/confirms, and tutorial 7 (rabbitmq.com/tutorials/tutorial-seven-java), strategy 3: confirms handled asynchronously.
     */
    CONFIRMS("rabbitmq-confirms", "RabbitMQ RPC, publisher confirms (JSON)", true, false, 1),

    /**
     * No reply queue, and requests sent ahead to the server. Sources: rabbitmq.com/docs/direct-reply-to;
     * rabbitmq.com/docs/confirms#channel-qos-prefetch-throughput ("values in the 100 through 300 range usually offer optimal throughput").
     */
    TUNED("rabbitmq-tuned", "RabbitMQ RPC, direct reply-to (JSON)", false, true, 100);

    /** Of a service; as many as the client library has threads for consumers. Source: amqp-client, ConsumerWorkService. */
    static final int WORKERS = Math.max(2, 2 * Runtime.getRuntime().availableProcessors());

    private static final int TUNED_CONSUMERS = 2;

    private final String variant;
    private final String title;
    private final boolean confirms;
    private final boolean direct;
    private final int prefetch;

    Wiring(String variant, String title, boolean confirms, boolean direct, int prefetch) {
        this.variant = variant;
        this.title = title;
        this.confirms = confirms;
        this.direct = direct;
        this.prefetch = prefetch;
    }

    String variant() {
        return variant;
    }

    String title() {
        return title;
    }

    boolean confirms() {
        return confirms;
    }

    /** Replies come to the channel itself, and handlers have a virtual thread each. */
    boolean direct() {
        return direct;
    }

    /** Requests that a consumer may hold unacknowledged. */
    int prefetch() {
        return prefetch;
    }

    /** Consumers of a service's queue, each with a channel of its own. */
    int consumers() {
        return direct ? TUNED_CONSUMERS : WORKERS;
    }

    Map<String, String> settings() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("protocol", "AMQP 0-9-1, default exchange");
        settings.put(
                "connections",
                "one a service that serves; one a neighbour, shared by all callers, with one channel, opened by the first call and again after a loss");
        settings.put(
                "request queue",
                "one a service, not durable as in tutorial 6; deleted with its last consumer, so that nothing outlives a run; no copy of a message on disk");
        settings.put(
                "reply queue",
                direct
                        ? "none: amq.rabbitmq.reply-to (rabbitmq.com/docs/direct-reply-to)"
                        : "one a client connection: exclusive, named by the broker (tutorial 6)");
        settings.put("correlation id", direct ? "the call's number in its connection" : "a random UUID (tutorial 6)");
        settings.put(
                "prefetch",
                direct
                        ? prefetch + " a consumer (rabbitmq.com/docs/confirms: 100 to 300 for throughput)"
                        : prefetch + " a consumer (tutorial 6: basicQos(1))");
        settings.put(
                "consumers",
                direct
                        ? TUNED_CONSUMERS + " a service, a channel each"
                        : "2 a processor, a channel each: the library's threads for them (tutorial 6: scale up by running another worker)");
        settings.put(
                "executor",
                direct
                        ? "a virtual thread a request, at most the prefetch at once"
                        : "the handler runs in the consumer's callback, one request a consumer at once (tutorial 6)");
        settings.put(
                "acknowledgement",
                confirms
                        ? "requests by hand, after the broker has confirmed the reply; replies automatic"
                        : "requests by hand, after the reply is sent; replies automatic (tutorial 6)");
        settings.put(
                "publisher confirms",
                confirms
                        ? "on requests and replies, handled asynchronously (tutorial 7, strategy 3; rabbitmq.com/docs/confirms)"
                        : "off: the reply tells that the request arrived (tutorial 6)");
        settings.put("mandatory", "on: a request to a queue that is not there fails at once");
        settings.put(
                "recovery",
                "the server's connection by the library, every 5 s, its default; the client's by the next call");
        settings.put("serializer", "Jackson 3: one JSON object a message; operation in the property type");
        settings.put("TCP_NODELAY", "on, the library's default");
        return settings;
    }
}
