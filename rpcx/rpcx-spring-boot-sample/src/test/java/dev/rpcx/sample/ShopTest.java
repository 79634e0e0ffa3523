package dev.rpcx.sample;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.sample.orders.OrdersApplication;
import dev.rpcx.sample.orders.StockClient;
import dev.rpcx.sample.stock.StockApplication;
import dev.rpcx.spring.RPCXServing;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.expression.spel.standard.SpelExpressionParser;

/** Tests the sample. This class is run with Spring Boot 3.5 too, so it names nothing that only 4 has. */
@Timeout(180)
class ShopTest {
    @Test
    void anOrderIsOneTraceThroughBothServices() throws Exception {
        List<String> lines = Shop.order();
        assertThat(lines.get(0)).isEqualTo("2 × tea ordered, 8 left");
        assertThat(lines.subList(1, 4).stream().map(line -> line.split("\\s+")[2]))
                .as("trace")
                .containsOnly(lines.get(1).split("\\s+")[2]);
        assertThat(lines.get(1)).endsWith("SERVER stock/take");
        assertThat(lines.get(2)).endsWith("CLIENT stock/take");
        assertThat(lines.get(3)).endsWith("SERVER orders/order");
        // the stock's parent is the call that the orders made, and that call's parent is the order
        assertThat(lines.get(1).split("\\s+")[3]).isEqualTo(lines.get(2).split("\\s+")[5]);
        assertThat(lines.get(2).split("\\s+")[3]).isEqualTo(lines.get(3).split("\\s+")[5]);
    }

    private static ConfigurableApplicationContext start(Class<?> application, String... more) {
        String[] arguments = java.util.stream.Stream.concat(
                        java.util.stream.Stream.of(
                                "--spring.main.banner-mode=off",
                                "--logging.level.root=warn",
                                "--rpcx.server.host=127.0.0.1",
                                "--rpcx.server.port=0"),
                        java.util.stream.Stream.of(more))
                .toArray(String[]::new);
        return new SpringApplicationBuilder(application)
                .registerShutdownHook(false)
                .run(arguments);
    }

    /** Returns a part of what the actuator is told of RPCX. The type of the indicator depends on the Spring Boot. */
    private static Object health(ConfigurableApplicationContext application, String part) {
        return new SpelExpressionParser()
                .parseExpression("health()." + part)
                .getValue(application.getBean("rpcxHealthIndicator"));
    }

    @Test
    void clientsAreInjectedAndCallsCountedAndHealthTold() {
        RPCXServing serving;
        try (ConfigurableApplicationContext stock = start(StockApplication.class)) {
            serving = stock.getBean(RPCXServing.class);
            try (ConfigurableApplicationContext orders = start(
                    OrdersApplication.class,
                    "--rpcx.services.stock=127.0.0.1:" + serving.port().orElseThrow())) {
                assertThat(orders.getBean(StockClient.class).take("coffee", 1)).isEqualTo(2);
                assertThat(stock.getBean(MeterRegistry.class)
                                .get("rpcx.server.calls")
                                .tag("method", "take")
                                .timer()
                                .count())
                        .isEqualTo(1);
                assertThat(orders.getBean(MeterRegistry.class)
                                .get("rpcx.client.calls")
                                .tag("outcome", "OK")
                                .timer()
                                .count())
                        .isEqualTo(1);
                assertThat(health(stock, "status.code")).isEqualTo("UP");
                assertThat(health(stock, "details['services']")).isEqualTo(List.of("stock/take"));
            }
        }
        assertThat(serving.isRunning()).isFalse();
    }
}
