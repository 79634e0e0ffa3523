package dev.rpcx.sample.stock;

import dev.rpcx.sample.Telemetry;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Import;

/** Runs the stock service as a process of its own: {@code --rpcx.server.port=PORT}. */
@SpringBootApplication
@Import(Telemetry.class)
public class StockApplication {
    /** Called by Spring. */
    public StockApplication() {}

    public static void main(String[] args) {
        SpringApplication.run(StockApplication.class, args);
    }
}
