package dev.parley.transport.thrift;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.messages.GatheredText;
import dev.parley.spi.messages.GatheredTypes;
import dev.parley.spi.messages.TestModelAllTypes;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import dev.parley.transport.thrift.generated.messages.DateTime;
import dev.parley.transport.thrift.generated.messages.Decimal;
import dev.parley.transport.thrift.generated.messages.TextPart;
import dev.parley.transport.thrift.generated.messages.TypesPart;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.DateTimeException;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;

/** The records of {@link dev.parley.spi.messages} and their generated namesakes, which stand here with their package. */
final class MessagesConversions {
    private MessagesConversions() {}

    static dev.parley.transport.thrift.generated.messages.TestModelOnlyText toStruct(TestModelOnlyText text) {
        return new dev.parley.transport.thrift.generated.messages.TestModelOnlyText(text.textField());
    }

    static TestModelOnlyText toRecord(dev.parley.transport.thrift.generated.messages.TestModelOnlyText text) {
        return new TestModelOnlyText(text.getTextField());
    }

    static dev.parley.transport.thrift.generated.messages.TestModelAllTypesList toStruct(TestModelAllTypesList list) {
        List<dev.parley.transport.thrift.generated.messages.TestModelAllTypes> items =
                new ArrayList<>(list.items().size());
        for (TestModelAllTypes item : list.items()) {
            items.add(toStruct(item));
        }
        return new dev.parley.transport.thrift.generated.messages.TestModelAllTypesList(items);
    }

    static TestModelAllTypesList toRecord(dev.parley.transport.thrift.generated.messages.TestModelAllTypesList list) {
        List<TestModelAllTypes> items = new ArrayList<>(list.getItemsSize());
        for (var item : list.getItems()) {
            items.add(toRecord(item));
        }
        return new TestModelAllTypesList(items);
    }

    private static dev.parley.transport.thrift.generated.messages.TestModelAllTypes toStruct(TestModelAllTypes item) {
        LocalDateTime time = item.dateTimeField();
        BigDecimal decimal = item.decimalField();
        return new dev.parley.transport.thrift.generated.messages.TestModelAllTypes(
                item.textField(),
                item.boolField(),
                (short) item.byteField(),
                new DateTime(time.toEpochSecond(ZoneOffset.UTC), time.getNano()),
                new Decimal(java.nio.ByteBuffer.wrap(decimal.unscaledValue().toByteArray()), decimal.scale()),
                item.floatField(),
                item.intField(),
                item.shortField(),
                item.longField());
    }

    private static TestModelAllTypes toRecord(dev.parley.transport.thrift.generated.messages.TestModelAllTypes item) {
        DateTime time = item.getDateTimeField();
        Decimal decimal = item.getDecimalField();
        try {
            return new TestModelAllTypes(
                    item.getTextField(),
                    item.isBoolField(),
                    item.getByteField(),
                    LocalDateTime.ofEpochSecond(time.getEpochSecond(), time.getNano(), ZoneOffset.UTC),
                    new BigDecimal(new BigInteger(decimal.getUnscaled()), decimal.getScale()),
                    (float) item.getFloatField(),
                    item.getIntField(),
                    item.getShortField(),
                    item.getLongField());
        } catch (DateTimeException | NumberFormatException e) {
            throw new CallException(Code.PROTOCOL, "not a value of the contract: " + e.getMessage(), e);
        }
    }

    static dev.parley.transport.thrift.generated.messages.GatheredText toStruct(GatheredText gathered) {
        List<TextPart> parts = new ArrayList<>(gathered.parts().size());
        gathered.parts().forEach(part -> parts.add(new TextPart(part.service(), toStruct(part.answer()))));
        return new dev.parley.transport.thrift.generated.messages.GatheredText(parts);
    }

    static GatheredText toRecord(dev.parley.transport.thrift.generated.messages.GatheredText gathered) {
        List<GatheredText.Part> parts = new ArrayList<>(gathered.getPartsSize());
        gathered.getParts()
                .forEach(part -> parts.add(new GatheredText.Part(part.getLeaf(), toRecord(part.getAnswer()))));
        return new GatheredText(parts);
    }

    static dev.parley.transport.thrift.generated.messages.GatheredTypes toStruct(GatheredTypes gathered) {
        List<TypesPart> parts = new ArrayList<>(gathered.parts().size());
        gathered.parts().forEach(part -> parts.add(new TypesPart(part.service(), toStruct(part.answer()))));
        return new dev.parley.transport.thrift.generated.messages.GatheredTypes(parts);
    }

    static GatheredTypes toRecord(dev.parley.transport.thrift.generated.messages.GatheredTypes gathered) {
        List<GatheredTypes.Part> parts = new ArrayList<>(gathered.getPartsSize());
        gathered.getParts()
                .forEach(part -> parts.add(new GatheredTypes.Part(part.getLeaf(), toRecord(part.getAnswer()))));
        return new GatheredTypes(parts);
    }
}
