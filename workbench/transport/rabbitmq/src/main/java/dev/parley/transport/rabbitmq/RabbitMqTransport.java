package dev.parley.transport.rabbitmq;

import com.rabbitmq.client.ConnectionFactory;
import dev.parley.model.Technology;
import dev.parley.model.Technology.Style;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import java.util.List;
import java.util.Optional;

/** Request and reply through RabbitMQ, in one wiring. */
record RabbitMqTransport(Wiring wiring) implements Transport {
    @Override
    public Technology technology() {
        return new Technology(
                wiring.variant(),
                wiring.title(),
                Style.ASYNCHRONOUS,
                Optional.of("rabbitmq"),
                List.of(
                        "consumers of the service's request queue",
                        "dispatcher of messages to operations",
                        "publisher of requests",
                        wiring.direct() ? "consumer of direct replies" : "consumer of its own reply queue",
                        "table of calls in flight"),
                "caller and callee know host and port of the broker; the caller knows the callee's queue, the callee is told the reply queue",
                wiring.settings());
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        return RabbitMqServer.start(service, wiring, contract, queue(at), handler);
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        return new RabbitMqNeighbour(caller, wiring, queue(to));
    }

    /** The library's defaults, user {@code guest} on the virtual host {@code /}. */
    static ConnectionFactory factory(Location.AtBroker at) {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setHost(at.host());
        factory.setPort(at.port());
        return factory;
    }

    private static Location.AtBroker queue(Location location) {
        if (location instanceof Location.AtBroker queue) {
            return queue;
        }
        throw new dev.parley.model.BadInput("location", location, "host:port/queue, at a RabbitMQ broker");
    }
}
