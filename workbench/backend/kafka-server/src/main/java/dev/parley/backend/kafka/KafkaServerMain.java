package dev.parley.backend.kafka;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * {@code KafkaServerMain FOLDER PORT CONTROLLER_PORT RELAYED_PORT RELAY_PORT}: one KRaft node, broker and controller,
 * on loopback, with its data in the folder, which may hold the data of an earlier start. Prints {@code ready VERSION}
 * once a message has made the round trip. Ends, without a farewell, when its standard input does: its data belong to
 * one run.
 *
 * <p>A Kafka client connects anew to the address that the broker advertises. So that a relay can stand before it,
 * clients of RELAYED_PORT are told RELAY_PORT, where nothing of the broker listens.
 */
public final class KafkaServerMain {
    static final String PROBE = "parley-probe";

    private KafkaServerMain() {}

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        Path folder = Path.of(args[0]);
        int port = Integer.parseInt(args[1]);
        Path properties =
                settings(folder, port, Integer.parseInt(args[2]), Integer.parseInt(args[3]), Integer.parseInt(args[4]));
        if (!Files.exists(folder.resolve("data/meta.properties"))) {
            int exit = kafka.tools.StorageTool.execute(
                    new String[] {"format", "-t", Uuid.randomUuid().toString(), "-c", properties.toString()},
                    System.err);
            if (exit != 0) {
                System.err.println("kafka: the storage in " + folder + " could not be formatted");
                System.exit(1);
            }
        }
        Thread.ofPlatform().name("kafka").start(() -> kafka.Kafka.main(new String[] {properties.toString()}));
        Thread.ofPlatform().daemon().name("leash").start(KafkaServerMain::awaitEnd);
        roundTrip("127.0.0.1:" + port);
        answers.println("ready " + AppInfoParser.getVersion());
    }

    /**
     * The broker's settings: out of the box, but for loopback, one replica (there is one node), topics that appear when
     * they are first used, and messages that are deleted after half a minute. Calls end long before that, and a run of
     * an hour would fill the disk.
     */
    private static Path settings(Path folder, int port, int controllerPort, int relayedPort, int relayPort)
            throws IOException {
        Files.createDirectories(folder);
        Path file = folder.resolve("server.properties");
        Files.writeString(
                file,
                """
                process.roles=broker,controller
                node.id=1
                controller.quorum.voters=1@127.0.0.1:%d
                listeners=PLAINTEXT://127.0.0.1:%d,RELAYED://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d
                advertised.listeners=PLAINTEXT://127.0.0.1:%d,RELAYED://127.0.0.1:%d
                controller.listener.names=CONTROLLER
                inter.broker.listener.name=PLAINTEXT
                listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,RELAYED:PLAINTEXT
                log.dirs=%s
                num.partitions=1
                offsets.topic.replication.factor=1
                offsets.topic.num.partitions=1
                transaction.state.log.replication.factor=1
                transaction.state.log.min.isr=1
                share.coordinator.state.topic.replication.factor=1
                share.coordinator.state.topic.min.isr=1
                group.initial.rebalance.delay.ms=0
                auto.create.topics.enable=true
                log.retention.ms=30000
                log.retention.check.interval.ms=5000
                log.segment.bytes=33554432
                log.segment.delete.delay.ms=1000
                """.formatted(
                        controllerPort, port, relayedPort, controllerPort, port, relayPort, folder.resolve("data")),
                StandardCharsets.UTF_8);
        return file;
    }

    private static void awaitEnd() {
        try {
            while (System.in.read() >= 0) {
                // nothing is said to a broker
            }
        } catch (IOException ended) {
            // the end is what is waited for
        }
        Runtime.getRuntime().halt(0);
    }

    static void roundTrip(String broker) throws ExecutionException, InterruptedException {
        Map<String, Object> where = Map.of("bootstrap.servers", broker);
        try (Admin admin = Admin.create(where)) {
            if (!admin.listTopics().names().get().contains(PROBE)) {
                admin.createTopics(List.of(new NewTopic(PROBE, 1, (short) 1)))
                        .all()
                        .get();
            }
        }
        try (KafkaProducer<String, String> producer =
                        new KafkaProducer<>(where, new StringSerializer(), new StringSerializer());
                KafkaConsumer<String, String> consumer =
                        new KafkaConsumer<>(where, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(new TopicPartition(PROBE, 0)));
            producer.send(new ProducerRecord<>(PROBE, PROBE)).get();
            consumer.seekToBeginning(consumer.assignment());
            while (consumer.poll(Duration.ofMillis(100)).isEmpty()) {
                Thread.onSpinWait();
            }
        }
    }
}
