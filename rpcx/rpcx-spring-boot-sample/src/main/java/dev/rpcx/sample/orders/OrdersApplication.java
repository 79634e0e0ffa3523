package dev.rpcx.sample.orders;

import dev.rpcx.sample.Telemetry;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Import;

/** Runs the orders service as a process of its own: {@code --rpcx.server.port=PORT --rpcx.services.stock=HOST:PORT}. */
@SpringBootApplication
@Import(Telemetry.class)
public class OrdersApplication {
    /** Called by Spring. */
    public OrdersApplication() {}

    public static void main(String[] args) {
        SpringApplication.run(OrdersApplication.class, args);
    }
}
