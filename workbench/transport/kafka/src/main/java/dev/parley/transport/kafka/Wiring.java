package dev.parley.transport.kafka;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** How producers and consumers are set: what the variants differ in. */
enum Wiring {
    /** Kafka's defaults. Source: kafka.apache.org/43/configuration, producer and consumer configs. */
    DEFAULTS("kafka", "Kafka request/reply (JSON)", Map.of(), Map.of()),

    /** For the time of one message rather than for many. Source: the same pages, by each setting's name. */
    TUNED(
            "kafka-tuned",
            "Kafka request/reply, no lingering (JSON)",
            Map.of(
                    ProducerConfig.LINGER_MS_CONFIG, "0",
                    ProducerConfig.ACKS_CONFIG, "1",
                    ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, "false"),
            Map.of(ConsumerConfig.CHECK_CRCS_CONFIG, "false"));

    /** Long enough for a broker under load, short enough for a service that is to say that there is none. */
    private static final String ADMIN_TIMEOUT_MS = "10000";

    /** As much as RPCX and gRPC carry here: a photo of 875 kB is over Kafka's standard of 1 MiB once it is JSON. */
    static final int MAX_MESSAGE_BYTES = 4 << 20;

    private final String variant;
    private final String title;
    private final Map<String, String> producer;
    private final Map<String, String> consumer;

    Wiring(String variant, String title, Map<String, String> producer, Map<String, String> consumer) {
        this.variant = variant;
        this.title = title;
        this.producer = producer;
        this.consumer = consumer;
    }

    String variant() {
        return variant;
    }

    String title() {
        return title;
    }

    Map<String, Object> admin(String broker) {
        return Map.of(
                AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, broker,
                AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, ADMIN_TIMEOUT_MS,
                AdminClientConfig.REQUEST_TIMEOUT_MS_CONFIG, ADMIN_TIMEOUT_MS);
    }

    Map<String, Object> producer(String broker) {
        Map<String, Object> settings = new LinkedHashMap<>(producer);
        settings.put(ProducerConfig.MAX_REQUEST_SIZE_CONFIG, MAX_MESSAGE_BYTES);
        settings.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, broker);
        settings.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
        settings.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
        return settings;
    }

    /** Of replies: no group, since the one partition is assigned by hand. */
    Map<String, Object> replies(String broker) {
        Map<String, Object> settings = new LinkedHashMap<>(consumer);
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, broker);
        settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        return settings;
    }

    /** Of requests: the service's group, in which it is a member that may come back after a crash. */
    Map<String, Object> requests(String broker, String topic) {
        Map<String, Object> settings = replies(broker);
        settings.put(ConsumerConfig.GROUP_ID_CONFIG, topic);
        settings.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, topic + "-1");
        return settings;
    }

    /** A name that no other client has. */
    static String replyTopic(String requestTopic, String caller) {
        return requestTopic + ".replies." + caller + "."
                + UUID.randomUUID().toString().substring(0, 8);
    }

    Map<String, String> settings() {
        boolean tuned = this == TUNED;
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("protocol", "Kafka's own, over TCP");
        settings.put(
                "connections",
                "a producer and a consumer a service that serves, the same a neighbour; each of them two connections: bootstrap and broker or group coordinator");
        settings.put(
                "request topic", "one a service, partitions as the broker's default (1), made by whoever comes first");
        settings.put(
                "reply topic",
                "one a client with one partition, assigned by hand and read from its end before the first call is sent");
        settings.put(
                "correlation",
                "headers kafka_correlationId (UUID, 16 bytes) and kafka_replyTopic (as Spring for Apache Kafka, ReplyingKafkaTemplate)");
        settings.put(
                "linger.ms",
                tuned
                        ? "0: a message is sent at once (producer configs)"
                        : "5, the default since Kafka 4.0 (KIP-1030): a message waits for others");
        settings.put(
                "acks",
                tuned
                        ? "1: answered once the leader has written (producer configs); so enable.idempotence=false"
                        : "all, idempotent: the default");
        settings.put(
                "max.request.size, max.message.bytes",
                "4 MiB on producers and topics (default 1 MiB): a photo of 875 kB is larger than that as JSON");
        settings.put("batch.size, compression", "16384 bytes, none: the defaults");
        settings.put(
                "fetch.min.bytes, fetch.max.wait.ms",
                "1 byte, 500 ms, the defaults: the broker answers a fetch with the first message, so the wait does not delay one");
        settings.put(
                "check.crcs",
                tuned ? "off (consumer configs: for those who seek extreme performance)" : "on, the default");
        settings.put(
                "group",
                "one a service, named as its topic, classic protocol; member by group.instance.id, so that a service that crashed comes back at once (KIP-345)");
        settings.put("offsets", "committed every 5 s, the default; a group that is new begins at the end");
        settings.put(
                "executor",
                "a virtual thread a request, handed over by the thread that polls (KafkaConsumer, Multi-threaded Processing, 2)");
        settings.put("durability", "one replica; the broker leaves writing to the disk to the system, its default");
        settings.put("serializer", "Jackson 3: one JSON object a message, key null; operation in a header");
        settings.put("TCP_NODELAY", "on, as the client and the broker set it");
        return settings;
    }
}
