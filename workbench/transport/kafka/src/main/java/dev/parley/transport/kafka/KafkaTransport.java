package dev.parley.transport.kafka;

import dev.parley.model.BadInput;
import dev.parley.model.Technology;
import dev.parley.model.Technology.Style;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import java.util.List;
import java.util.Optional;

/** Request and reply through Kafka, in one wiring. */
record KafkaTransport(Wiring wiring) implements Transport {
    @Override
    public Technology technology() {
        return new Technology(
                wiring.variant(),
                wiring.title(),
                Style.ASYNCHRONOUS,
                Optional.of("kafka"),
                List.of(
                        "consumer of the service's request topic",
                        "dispatcher of messages to operations",
                        "producer of replies",
                        "producer of requests",
                        "consumer of its own reply topic",
                        "table of calls in flight"),
                "caller and callee know host and port of the broker; the caller knows the callee's topic, the callee is told the reply topic",
                wiring.settings());
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        return KafkaServer.start(wiring, contract, topic(at), handler);
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        return new KafkaNeighbour(caller, wiring, topic(to));
    }

    static String broker(Location.AtBroker at) {
        return at.host() + ":" + at.port();
    }

    /** The name is the topic's. */
    private static Location.AtBroker topic(Location location) {
        if (location instanceof Location.AtBroker topic && topic.service().matches("[a-zA-Z0-9._-]{1,150}")) {
            return topic;
        }
        throw new BadInput("location", location, "host:port/topic, at a Kafka broker");
    }
}
